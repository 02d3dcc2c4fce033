// The gRPC server: health checks, reflection, shutdown.

import { setTimeout } from 'node:timers/promises'
import { Server, ServerCredentials, setLogger } from '@grpc/grpc-js'
import { ReflectionService } from '@grpc/reflection'
import { HealthImplementation } from 'grpc-health-check'
import type { Logger } from 'pino'
import type { CapsConfig, Config } from '../config/schema.ts'
import type { Metrics } from '../metrics/metrics.ts'
import { Gatekeeper } from '../service/gatekeeper.ts'
import { addressOf, isLoopback, listenError, type TlsOptions } from '../service/listeners.ts'
import type { Readiness } from '../service/readiness.ts'
import type { Service, ServiceObserver } from '../service/service.ts'
import type { Tracing } from '../tracing/tracing.ts'
import { Domains } from './domains.ts'
import { handlerOf } from './handler.ts'
import { loadDefinitions, SERVICE_NAME, serviceIn } from './protocol.ts'
import { RateLimits } from './rate-limits.ts'

const DEFAULT_MESSAGE_BYTES = 2 ** 19
const DEFAULT_DESCRIPTORS = 64
const DEFAULT_IN_FLIGHT = 10_000

/** Interval between readiness checks. */
const HEALTH_MS = 500

/** When the server stops, calls in flight are cut off after this time. */
const STOP_MS = 10_000

/** At shutdown, how long streams stay open after the last call. Health watchers never close their streams. */
const LINGER_MS = 1000
const LINGER_STEP_MS = 50

/** Names in health checks: the whole server, the service, and the name that envoyproxy/ratelimit uses. */
const HEALTH_NAMES = ['', SERVICE_NAME, 'ratelimit']

export interface EnvoyOptions {
  readonly address: string
  readonly domains: Domains | undefined
  readonly service: Service
  readonly observer: ServiceObserver
  readonly readiness: Readiness
  readonly metrics: Metrics
  readonly tracing: Tracing | undefined
  readonly log: Logger
  readonly tls: TlsOptions | undefined
}

export class EnvoyServer {
  readonly #options: EnvoyOptions
  readonly #rateLimits: RateLimits
  readonly #server: Server
  readonly #gatekeeper: Gatekeeper
  readonly #isLoopback: boolean
  readonly #health = new HealthImplementation(statusesOf('NOT_SERVING'))
  readonly #timer: NodeJS.Timeout
  readonly #calls = { underWay: 0 }
  #isServing = false
  #isStopping = false
  #port = 0

  private constructor(options: EnvoyOptions) {
    const { address, service, domains, observer, metrics, log } = options
    const { config } = service
    const { caps = {} } = config
    this.#options = options
    this.#isLoopback = isLoopback(addressOf(address).host)
    // A separate gatekeeper, because other machines may reach this listener even if HTTP is local.
    this.#gatekeeper = new Gatekeeper(config.auth, this.#isLoopback)
    this.#rateLimits = new RateLimits({
      domains: domains ?? new Domains([], []),
      config: config.envoy ?? { files: [] },
      store: service.store,
      maxDescriptors: caps.descriptors ?? DEFAULT_DESCRIPTORS,
      ...{ observer, metrics, log },
    })
    const maxInFlight = caps.inFlight ?? DEFAULT_IN_FLIGHT
    this.#server = new Server(settingsOf(caps, maxInFlight))
    const definitions = loadDefinitions()
    this.#server.addService(serviceIn(definitions), {
      ShouldRateLimit: handlerOf({
        rateLimits: this.#rateLimits,
        gatekeeper: this.#gatekeeper,
        log,
        maxInFlight,
        tracing: options.tracing,
        calls: this.#calls,
      }),
    })
    this.#health.addToServer(this.#server)
    // Every definition contains the same files. The package decodes them for each definition that it gets, so it gets one. Two gRPC
    // packages have different types for definitions.
    const request = definitions['envoy.service.ratelimit.v3.RateLimitRequest']
    new ReflectionService({ request } as never).addToServer(this.#server)
    this.#timer = setInterval(() => void this.#checkReadiness(), HEALTH_MS).unref()
  }

  /** Resolves once the server accepts calls. */
  static async start(options: EnvoyOptions): Promise<EnvoyServer> {
    const started = new EnvoyServer(options)
    try {
      await started.#listen()
      void started.#checkReadiness()
    } catch (error) {
      clearInterval(started.#timer)
      started.#rateLimits.close()
      throw error
    }
    return started
  }

  /** The address with the actual port, such as `127.0.0.1:8081`. */
  get address(): string {
    return `${this.#options.address.slice(0, this.#options.address.lastIndexOf(':'))}:${this.#port}`
  }

  reload(domains: Domains | undefined, config: Config): void {
    this.#gatekeeper.reload(config.auth, this.#isLoopback)
    this.#rateLimits.reload(domains ?? new Domains([], []), config.envoy ?? { files: [] })
  }

  /** Reports NOT_SERVING to health checks. */
  drain(): void {
    this.#isStopping = true
    this.#setHealth(false)
  }

  /** Rejects new calls, finishes calls in flight, and stops. */
  async stop(): Promise<void> {
    this.drain()
    clearInterval(this.#timer)
    let hasEnded = false
    const ended = new Promise<void>((resolve) => this.#server.tryShutdown(() => resolve())).then(() => {
      hasEnded = true
    })
    const stopMs = performance.now() + STOP_MS
    for (let idleMs = 0; !hasEnded && idleMs < LINGER_MS && performance.now() < stopMs; ) {
      await Promise.race([ended, setTimeout(LINGER_STEP_MS)])
      idleMs = this.#calls.underWay > 0 ? 0 : idleMs + LINGER_STEP_MS
    }
    if (!hasEnded) this.#server.forceShutdown()
    this.#rateLimits.close()
  }

  #listen(): Promise<void> {
    const { address, tls } = this.#options
    return new Promise((resolve, reject) => {
      // Silences gRPC, which would also log a listen error, with less detail.
      setLogger({})
      this.#server.bindAsync(address, credentialsOf(tls), (error, port) => {
        setLogger({ error: console.error, info: console.error, debug: console.error })
        this.#port = port
        if (error) reject(listenError('grpc', address, error))
        else resolve()
      })
    })
  }

  async #checkReadiness(): Promise<void> {
    const { readiness, service } = this.#options
    const { onStoreError = 'throw' } = service.config.envoy ?? {}
    // With `deny`, the server stays ready during an outage, because many gateways would allow everything otherwise.
    const { ready } = await readiness.state(onStoreError === 'deny' ? [] : [onStoreError])
    if (!this.#isStopping) this.#setHealth(ready)
  }

  #setHealth(isServing: boolean): void {
    if (isServing === this.#isServing) return
    this.#isServing = isServing
    for (const [name, status] of Object.entries(statusesOf(isServing ? 'SERVING' : 'NOT_SERVING'))) {
      this.#health.setStatus(name, status)
    }
  }
}

function statusesOf(status: 'SERVING' | 'NOT_SERVING'): Record<string, 'SERVING' | 'NOT_SERVING'> {
  return Object.fromEntries(HEALTH_NAMES.map((name) => [name, status]))
}

function settingsOf({ bodyBytes }: CapsConfig, maxInFlight: number): ConstructorParameters<typeof Server>[0] {
  return {
    'grpc.max_receive_message_length': bodyBytes ?? DEFAULT_MESSAGE_BYTES,
    'grpc.max_concurrent_streams': maxInFlight,
    // Detects clients that have disappeared.
    'grpc.keepalive_time_ms': 60_000,
    'grpc.keepalive_timeout_ms': 20_000,
    // Makes clients resolve the address again occasionally, as in envoyproxy/ratelimit.
    'grpc.max_connection_age_ms': 24 * 3_600_000,
    'grpc.max_connection_age_grace_ms': 3_600_000,
    // Unused statistics would slow down every call.
    'grpc.enable_channelz': 0,
    // Megabytes per connection.
    'grpc-node.max_session_memory': 64,
  }
}

function credentialsOf(tls: TlsOptions | undefined): ServerCredentials {
  if (tls === undefined) return ServerCredentials.createInsecure()
  const { cert, key, ca, requestCert = false } = tls
  const pair = { cert_chain: Buffer.from(cert), private_key: Buffer.from(key) }
  return ServerCredentials.createSsl(ca === undefined ? null : Buffer.from(ca), [pair], requestCert)
}
