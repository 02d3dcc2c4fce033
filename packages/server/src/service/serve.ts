// Runs the service in this process, from its start to its end.

import cluster from 'node:cluster'
import { fileURLToPath } from 'node:url'
import { type Logger, pino } from 'pino'
import { UsageError } from '#replay/errors.js'
import { type LoadedConfig, loadConfig } from '../config/load.ts'
import { OneProcess } from './instance.ts'
import { Reloading } from './reloading.ts'
import { type RunningService, startService } from './running.ts'
import { storeConfigOf } from './stores.ts'
import { runPrimary, WorkerProcesses } from './workers.ts'

/** Shipped in the package, so that the service starts before anything has been written. */
const EXAMPLE = fileURLToPath(new URL('../../examples/slidegate.yaml', import.meta.url))

export interface ServeOptions {
  /** The configuration. Default: the built-in example. */
  readonly file?: string | undefined
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
  const { file = EXAMPLE, http, grpc } = options
  const load = () => loadConfig(file, { listen: { http, grpc } })
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
  { file, drainMs }: ServeOptions,
  { log, dropped }: ServiceLog,
): Promise<number> {
  const processes = cluster.isWorker ? new WorkerProcesses() : new OneProcess()
  let reloading: Reloading | undefined
  process.on('SIGHUP', () => reloading?.reload())
  const told = new Promise((resolve) => {
    process.on('SIGTERM', resolve)
    process.on('SIGINT', resolve)
    // A worker without its primary is one that nobody can end.
    process.on('disconnect', resolve)
  })
  try {
    const running = await startService({ loaded, log, droppedLines: dropped, processes })
    // Only the first worker prints, so each text appears once.
    const isFirst = (cluster.worker?.id ?? 1) === 1
    const isTerminal = process.stderr.isTTY === true
    let hasLinked = running.adminLink !== undefined
    const reloaded = (): void => {
      if (!isFirst || hasLinked || running.adminLink === undefined) return
      hasLinked = true
      log.info({ adminLink: running.adminLink }, 'the configuration has no tokens any more')
    }
    reloading = new Reloading({ load, loaded, running, log, reloaded })
    log.info(
      {
        ...{ http: running.httpUrl, grpc: running.grpcAddress },
        ...(isFirst && !isTerminal && { adminLink: running.adminLink }),
      },
      'slidegate is listening',
    )
    // Production logs stay pure JSON.
    if ((file === undefined || isTerminal) && isFirst) process.stderr.write(welcomeOf(running, file))
    if (processes instanceof WorkerProcesses) processes.ready()
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

/** Where to look and what to send first, for a person who started the service. */
function welcomeOf({ httpUrl, adminLink, service }: RunningService, file: string | undefined): string {
  const limiter = service.active()[0]?.declared.name ?? 'api'
  const body = `'{"limiter":"${limiter}","key":"user:42"}'`
  const lines = [
    '',
    `Open ${adminLink ?? httpUrl}`,
    `Try  curl -i ${httpUrl}/v1/consume -H 'content-type: application/json' -d ${body}`,
    `API  ${httpUrl}/openapi.json`,
    '',
  ]
  if (file === undefined) {
    lines.push(
      'This is the built-in example configuration. To use your own, copy it and pass --config slidegate.yaml:',
      `cp '${EXAMPLE}' slidegate.yaml`,
      '',
    )
  }
  return `${lines.map((line) => `  ${line}`.trimEnd()).join('\n')}\n`
}

/** Characters that wait to be written at most. */
const MAX_WAITING = 4 * 2 ** 20

/** What a pipe takes in one piece, whoever else writes to it. */
const PIPE_BYTES = 4096

interface ServiceLog {
  readonly log: Logger
  /** Lines that there was no room for. */
  dropped(): number
}

/** The log of the service, on the standard output. Nothing waits until it is written: what is read too slowly is dropped. */
function openLog(level: string): ServiceLog {
  let dropped = 0
  const output = pino.destination({ fd: 1, sync: false, maxLength: MAX_WAITING, maxWrite: PIPE_BYTES })
  output.on('drop', () => {
    dropped++
  })
  // Where nothing can be written there is nobody to tell. It is tried again with the next line.
  output.on('error', () => {})
  return { log: pino({ level }, output), dropped: () => dropped }
}
