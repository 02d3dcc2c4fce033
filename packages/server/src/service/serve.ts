import cluster from 'node:cluster'
import { type LoadedConfig, loadConfig } from '../config/load.ts'
import { UsageError } from '../errors.ts'
import { openLog, type ServiceLog } from './log.ts'
import { Alone } from './peers.ts'
import { Reloading } from './reloading.ts'
import { type RunningService, startService } from './running.ts'
import { storeConfigOf } from './store.ts'
import { runPrimary, WorkerPeers } from './workers.ts'

export interface ServeOptions {
  readonly file: string
  readonly http?: string | undefined
  readonly grpc?: string | undefined
  /** Processes that share the listeners. */
  readonly workers: number
  readonly drainMs: number
}

/**
 * Runs the service until it is told to end, by SIGTERM or SIGINT; resolves to the exit code. SIGHUP reads the configuration
 * anew.
 *
 * @throws {ConfigError} {UsageError}
 */
export async function serve(options: ServeOptions): Promise<number> {
  const { http, grpc } = options
  const load = () => loadConfig(options.file, { listen: { http, grpc } })
  const loaded = load()
  const log = openLog(loaded.config.logging?.level ?? 'info')
  if (options.workers === 1 || cluster.isWorker) return serveHere(loaded, load, options, log)
  if (storeConfigOf(loaded.config.store, process.env).redis === undefined) {
    throw new UsageError(
      `--workers ${options.workers} share their counts through Redis: set store.redis or REDIS_URL, or use --workers 1`,
    )
  }
  return runPrimary(options.workers, log.log, options.drainMs)
}

async function serveHere(
  loaded: LoadedConfig,
  load: () => LoadedConfig,
  { drainMs }: ServeOptions,
  { log, dropped }: ServiceLog,
): Promise<number> {
  const peers = cluster.isWorker ? new WorkerPeers() : new Alone()
  let reloading: Reloading | undefined
  process.on('SIGHUP', () => reloading?.reload())
  const told = new Promise((resolve) => {
    process.on('SIGTERM', resolve)
    process.on('SIGINT', resolve)
    // A worker without its primary is one that nobody can end.
    process.on('disconnect', resolve)
  })
  try {
    const running = await startService({ loaded, log, droppedLines: dropped, peers })
    reloading = new Reloading({ load, loaded, running, log })
    log.info({ http: running.httpUrl, grpc: running.grpcAddress }, 'slidegate is listening')
    if (process.stdout.isTTY) process.stdout.write(hintOf(running))
    if (peers instanceof WorkerPeers) peers.ready()
    await told
    log.info({ drainMs }, 'slidegate is ending')
    reloading.close()
    await running.stop(drainMs)
    return 0
  } finally {
    // The channel would keep it alive.
    if (cluster.isWorker && process.connected) process.disconnect()
  }
}

/** For somebody who has just started it, and sees nothing but lines of JSON. */
function hintOf({ httpUrl, service }: RunningService): string {
  const limiter = service.active()[0]?.declared.name ?? 'api'
  const body = `'{"limiter":"${limiter}","key":"user:42"}'`
  return `\n  Try:  curl -i ${httpUrl}/v1/consume -H 'content-type: application/json' -d ${body}\n  Page: ${httpUrl}/\n  API:  ${httpUrl}/openapi.json\n\n`
}
