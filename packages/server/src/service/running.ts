import { readFileSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { resolve } from 'node:path'
import type { Logger } from 'pino'
import type { LoadedConfig } from '../config/load.ts'
import type { Config } from '../config/schema.ts'
import { type App, createApp, type TlsOptions } from '../http/app.ts'
import { Metrics } from '../metrics.ts'
import { Gatekeeper } from './gatekeeper.ts'
import { Alone, type Peers } from './peers.ts'
import { Readiness } from './readiness.ts'
import { Service } from './service.ts'
import { openStore, storeConfigOf } from './store.ts'

export const DEFAULT_HTTP = '127.0.0.1:8080'

/** What is needed to run the service. */
export interface StartOptions {
  readonly loaded: LoadedConfig
  readonly log: Logger
  readonly environment?: NodeJS.ProcessEnv
  readonly peers?: Peers
}

/** A service that answers. */
export interface RunningService {
  readonly service: Service
  readonly app: App
  readonly httpUrl: string
  /** Puts another configuration in force. What it says of listeners and stores counts from the next start. @throws as the service does */
  reload(loaded: LoadedConfig): void
  /** Takes no new connections, answers what is under way, then ends. */
  stop(): Promise<void>
}

export async function startService(options: StartOptions): Promise<RunningService> {
  const { log, environment = process.env, peers = new Alone() } = options
  const { config, folder } = options.loaded
  const store = openStore(storeConfigOf(config.store, environment), folder)
  const metrics = new Metrics()
  const service = new Service(config, store, {
    decided: (limiter, _key, decision) => metrics.decided(limiter, decision),
    storeFailed: (limiter, { reason }) => metrics.storeErrors.inc({ limiter, reason }),
    storeDown: (limiter, error) => log.warn({ limiter, err: error }, 'the store gives no answer'),
    storeUp: (limiter, downMs) => log.info({ limiter, downMs }, 'the store answers again'),
  })
  const address = addressOf(config.listen?.http ?? DEFAULT_HTTP)
  const gatekeeper = new Gatekeeper(config.auth, isLoopback(address.host))
  const readiness = new Readiness(service, store)
  const tls = config.listen?.tls && tlsOptions(config.listen.tls, folder)
  const app = await createApp({ service, gatekeeper, readiness, metrics, peers, log }, tls)
  await app.listen(address)
  const { port } = app.server.address() as AddressInfo
  const host = address.host.includes(':') ? `[${address.host}]` : address.host
  return {
    service,
    app,
    httpUrl: `${tls ? 'https' : 'http'}://${host}:${port}`,
    reload: ({ config: next }) => {
      service.reload(next)
      gatekeeper.reload(next.auth, isLoopback(address.host))
    },
    stop: async () => {
      service.isDraining = true
      await app.close()
      readiness.close()
      service.close()
      await store.close()
    },
  }
}

/** `127.0.0.1:8080`, `[::1]:8080` */
export function addressOf(text: string): { readonly host: string; readonly port: number } {
  const colon = text.lastIndexOf(':')
  return { host: text.slice(0, colon).replace(/^\[(.*)\]$/, '$1'), port: Number(text.slice(colon + 1)) }
}

export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127\.\d+\.\d+\.\d+$/.test(host)
}

export function tlsOptions(
  tls: NonNullable<NonNullable<Config['listen']>['tls']>,
  folder: string,
): TlsOptions {
  const read = (file: string) => readFileSync(resolve(folder, file), 'utf8')
  const { cert, key, clientCa } = tls
  return { cert: read(cert), key: read(key), ...(clientCa && { ca: read(clientCa), requestCert: true }) }
}
