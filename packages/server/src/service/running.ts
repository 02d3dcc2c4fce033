// START HERE: starts all parts, connects them, and stops them.

import type { Server } from 'node:http'
import { type AddressInfo, Server as NetServer } from 'node:net'
import { setImmediate, setTimeout } from 'node:timers/promises'
import type { Logger } from 'pino'
import type { RedisStore } from 'slidegate/redis'
import { Admin } from '../admin/admin.ts'
import type { Every } from '../admin/timer.ts'
import { Capture } from '../capture/capture.ts'
import { DecisionLog } from '../capture/decision-log.ts'
import type { LoadedConfig } from '../config/load.ts'
import { createApp } from '../http/app.ts'
import type { App } from '../http/context.ts'
import { Metrics } from '../metrics/metrics.ts'
import { redacting } from '../redact.ts'
import { Configuration } from './configuration.ts'
import { Gatekeeper } from './gatekeeper.ts'
import { ADMIN_TOKEN, OneProcess, type Processes } from './instance.ts'
import { addressOf, grpcAddressOf, isLoopback, listenError, tlsOptions } from './listeners.ts'
import { Readiness } from './readiness.ts'
import { Service, type ServiceObserver } from './service.ts'
import { openStore, storeConfigOf } from './stores.ts'

/** Time after which requests in progress are cut off. */
const STOP_MS = 30_000

/** How long idle connections stay open. */
const LINGER_MS = 1000
const LINGER_STEP_MS = 20

const DEFAULT_HTTP = '127.0.0.1:8080'

interface StartOptions {
  readonly loaded: LoadedConfig
  readonly log: Logger
  /** Number of log lines that were dropped. */
  readonly droppedLines?: () => number
  readonly environment?: NodeJS.ProcessEnv
  readonly processes?: Processes
  /** Schedules periodic reads of the store. Default: a timer. */
  readonly every?: Every
  /** The wall clock for the history, in epoch milliseconds. Default: `Date.now`. */
  readonly now?: () => number
  /** Whether decisions are counted. Benchmarks turn counting off for comparison. Default: true. */
  readonly isWatched?: boolean
  /** Adds routes before the server listens. For benchmarks. */
  readonly extend?: (app: App) => void
}

export interface RunningService {
  readonly service: Service
  readonly readiness: Readiness
  readonly metrics: Metrics
  readonly capture: Capture
  readonly app: App
  readonly httpUrl: string
  /** The dashboard's URL with the admin token. Undefined if `tokens` or `anonymous` is configured. */
  readonly adminLink: string | undefined
  /** The gRPC address, if enabled. */
  readonly grpcAddress: string | undefined
  /**
   * Applies another configuration. Listeners and stores change at the next start.
   *
   * @throws whatever {@link Service.reload} throws
   */
  reload(loaded: LoadedConfig): void
  /**
   * Stops gracefully.
   *
   * For `drainMs` (default: 0), the service reports that it isn't ready, and responses close their connections. It
   * then accepts no new connections, finishes requests in progress, and ends. After 30 s, it cuts off the
   * remaining requests.
   */
  stop(drainMs?: number): Promise<void>
}

export async function startService(options: StartOptions): Promise<RunningService> {
  const { environment = process.env, processes = new OneProcess() } = options
  const log = redacting(options.log)
  const { config, folder } = options.loaded
  // OpenTelemetry and gRPC are loaded only if they are configured.
  const tracing = config.tracing
    ? new (await import('../tracing/tracing.ts')).Tracing({
        ...{ config: config.tracing, instance: processes.instance, log },
      })
    : undefined
  const storeConfig = storeConfigOf(config.store, environment)
  const store = openStore(storeConfig, folder)
  const metrics = new Metrics()
  metrics.configValid.set(1)
  metrics.share(processes)
  const observer: ServiceObserver = {
    decided: (limiter, key, decision) => {
      metrics.limiters.decided(limiter, decision)
      admin.decided(limiter, key, decision)
      capture.decided(limiter, key, decision)
      decisionLog.decided(limiter, key, decision)
    },
    opened: (limiter) => metrics.limiters.opened(limiter),
    closed: (limiter) => metrics.limiters.closed(limiter),
    storeFailed: (limiter) => metrics.limiters.storeFailed(limiter),
    storeDown: (limiter) => metrics.limiters.storeDown(limiter),
    storeUp: (limiter) => metrics.limiters.storeUp(limiter),
    logger: { warn: (line) => log.warn(line) },
    ...(tracing && { around: (limiter) => tracing.traced(limiter) }),
  }
  const { decided: _, ...unwatched } = observer
  const service = new Service(config, store, options.isWatched === false ? unwatched : observer)
  const readiness = new Readiness(service, store)
  const admin = new Admin({
    ...{ service, processes, store: storeConfig, folder, log, every: options.every, now: options.now },
    redisStore: storeConfig.redis && (store as RedisStore),
    limitsOf: (limiter) => metrics.limiters.limitsOf(limiter),
    isStoreDown: (limiter) => metrics.limiters.isStoreDown(limiter),
    outageOf: (limiter) => metrics.limiters.outageOf(limiter),
    fileState: () => readiness.fileState,
  })
  const capture = new Capture({ config: config.capture, store: storeConfig, folder, log })
  const decisionLog = new DecisionLog(config, folder, log, options.droppedLines)
  processes.answer('captured', () => capture.flush())
  metrics.read({ service, store, admin, capture, decisionLog })
  await admin.start()
  const { http = DEFAULT_HTTP } = config.listen ?? {}
  const address = addressOf(http)
  const gatekeeper = new Gatekeeper(config.auth, isLoopback(address.host))
  const configuration = new Configuration(options.loaded, environment)
  const tls = config.listen?.tls && tlsOptions(config.listen.tls, folder)
  const app = await createApp(
    { service, gatekeeper, configuration, readiness, metrics, processes, admin, capture, tracing, log },
    tls,
  )
  options.extend?.(app)
  const release = async (): Promise<void> => {
    readiness.close()
    service.close()
    await Promise.all([admin.close(), capture.close(), decisionLog.close(), tracing?.close()])
    await store.close()
  }
  // Connects now, so that the first request doesn't have to wait. If Redis is down, the service starts anyway.
  if ('ready' in store) await store.ready().catch(() => {})
  await readiness.state()
  try {
    await app.listen(address)
  } catch (error) {
    await release()
    throw listenError('http', http, error)
  }
  const { domains } = options.loaded
  const grpcAddress = grpcAddressOf(config)
  const startEnvoy = async (address: string) => {
    const { EnvoyServer } = await import('../envoy/server.ts')
    const options = { domains, service, observer, readiness, metrics, tracing, log, tls, address }
    return EnvoyServer.start(options).catch(async (error) => {
      await app.close()
      await release()
      throw error
    })
  }
  const envoy = grpcAddress === undefined ? undefined : await startEnvoy(grpcAddress)
  const { port } = app.server.address() as AddressInfo
  const host = address.host.includes(':') ? `[${address.host}]` : address.host
  const httpUrl = `${tls ? 'https' : 'http'}://${host}:${port}`
  let stopped: Promise<void> | undefined
  const stop = async (drainMs: number): Promise<void> => {
    service.isDraining = true
    envoy?.drain()
    app.server.prependListener('request', (_request, response) => response.setHeader('connection', 'close'))
    if (drainMs > 0) await setTimeout(drainMs)
    const cut = globalThis.setTimeout(() => app.server.closeAllConnections(), STOP_MS)
    await Promise.all([lastConnections(app.server), envoy?.stop()])
    await app.close()
    clearTimeout(cut)
    await release()
  }
  return {
    service,
    readiness,
    metrics,
    capture,
    app,
    httpUrl,
    get adminLink() {
      return gatekeeper.isOpen ? `${httpUrl}/?token=${ADMIN_TOKEN}` : undefined
    },
    grpcAddress: envoy?.address,
    reload: (changed) => {
      const { config: next, domains } = changed
      service.reload(next)
      configuration.reload(changed)
      envoy?.reload(domains, next)
      gatekeeper.reload(next.auth, isLoopback(address.host))
      capture.reload(next.capture)
      decisionLog.reload(next)
      void admin.audit.note({ who: 'configuration', what: 'reload' })
    },
    stop: (drainMs = 0) => {
      stopped ??= stop(drainMs)
      return stopped
    },
  }
}

/**
 * Stops listening, and waits for the open connections to end.
 *
 * Every response closes its connection. Idle connections stay open briefly, because a request may already be
 * on its way.
 */
async function lastConnections(server: Server): Promise<void> {
  // Accepts the connections that the system has queued. Otherwise, they would be reset.
  await setImmediate()
  // HTTP's own close() would close idle connections immediately.
  NetServer.prototype.close.call(server)
  for (let waitedMs = 0; waitedMs < LINGER_MS; waitedMs += LINGER_STEP_MS) {
    const count = await new Promise<number>((resolve) => server.getConnections((_, found) => resolve(found)))
    if (count === 0) return
    await setTimeout(LINGER_STEP_MS)
  }
}
