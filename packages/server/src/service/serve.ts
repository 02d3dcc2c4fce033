// Runs the service in this process, from startup to shutdown.

import cluster from 'node:cluster'
import { fileURLToPath } from 'node:url'
import { type Logger, pino } from 'pino'
import { UsageError } from '../../../replay/src/errors.ts'
import { type LoadedConfig, loadConfig } from '../config/load.ts'
import { PACKAGE } from '../package-folder.ts'
import { OneProcess } from './instance.ts'
import { Reloading } from './reloading.ts'
import { type RunningService, startService } from './running.ts'
import { storeConfigOf } from './stores.ts'
import { runPrimary, WorkerProcesses } from './workers.ts'

/** The example configuration, which ships with the package. The service uses it if no file is set. */
const EXAMPLE = fileURLToPath(new URL('examples/slidegate.yaml', PACKAGE))

/** How long a failed start may take to end, in milliseconds. */
const FAILED_MS = 1000

export interface ServeOptions {
  /** The configuration file. Default: the built-in example. */
  readonly file?: string | undefined
  readonly http?: string | undefined
  readonly grpc?: string | undefined
  /** Number of processes that share the listeners. */
  readonly workers: number
  readonly drainMs: number
}

/**
 * Runs the service until SIGTERM or SIGINT, and resolves to the exit code.
 *
 * SIGHUP reloads the configuration.
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
      `--workers ${options.workers} requires Redis to share counts: set store.redis or REDIS_URL, or use --workers 1`,
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
  const ended = new Promise((resolve) => {
    process.on('SIGTERM', resolve)
    process.on('SIGINT', resolve)
    // When the primary is gone, nothing else stops this worker.
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
      log.info({ adminLink: running.adminLink }, 'the configuration no longer has tokens')
    }
    reloading = new Reloading({ load, loaded, running, log, reloaded })
    log.info(
      {
        ...{ http: running.httpUrl, grpc: running.grpcAddress },
        ...(isFirst && !isTerminal && { adminLink: running.adminLink }),
      },
      'slidegate is listening',
    )
    // Not printed in production, so that the logs stay pure JSON.
    if ((file === undefined || isTerminal) && isFirst) process.stderr.write(welcomeOf(running, file))
    if (processes instanceof WorkerProcesses) processes.ready()
    await ended
    log.info({ drainMs }, 'slidegate is stopping')
    reloading.close()
    await running.stop(drainMs)
    return 0
  } catch (error) {
    // A start that fails may leave connections open, which would keep the process alive.
    setTimeout(() => process.exit(), FAILED_MS).unref()
    throw error
  } finally {
    // The open channel to the primary would keep the process alive.
    if (cluster.isWorker && process.connected) process.disconnect()
  }
}

/** Describes the first steps, for the person who started the service. */
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

/** Maximum number of buffered characters. */
const MAX_WAITING = 4 * 2 ** 20

/** Bytes that a pipe accepts atomically, even with several writers. */
const PIPE_BYTES = 4096

interface ServiceLog {
  readonly log: Logger
  /** Number of lines that were dropped. */
  dropped(): number
}

/** Logs to standard output without blocking. Lines are dropped if the reader is too slow. */
function openLog(level: string): ServiceLog {
  let dropped = 0
  const output = pino.destination({ fd: 1, sync: false, maxLength: MAX_WAITING, maxWrite: PIPE_BYTES })
  output.on('drop', () => {
    dropped++
  })
  // Errors are ignored, because there is nowhere to report them. The next write tries again.
  output.on('error', () => {})
  return { log: pino({ level }, output), dropped: () => dropped }
}
