// Addresses and certificates to listen with.

import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { messageOf } from '#replay/errors.js'
import type { Config } from '../config/schema.ts'

/** `127.0.0.1:8080`, `[::1]:8080` */
export function addressOf(text: string): { readonly host: string; readonly port: number } {
  const colon = text.lastIndexOf(':')
  return { host: text.slice(0, colon).replace(/^\[(.*)\]$/, '$1'), port: Number(text.slice(colon + 1)) }
}

export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127\.\d+\.\d+\.\d+$/.test(host)
}

/** What to tell an operator whose service cannot listen where `listen.<name>` says. */
export function listenError(name: 'http' | 'grpc', address: string, cause: unknown): Error {
  const said = messageOf(cause)
  const why = said.includes('EADDRINUSE') ? 'something else listens there already (EADDRINUSE)' : said
  const settings = `--${name}, SLIDEGATE_${name.toUpperCase()} or listen.${name}`
  return new Error(`cannot listen on ${address}: ${why}; ${settings} sets another address`, { cause })
}

/** Certificates, as `node:https` takes them. */
export interface TlsOptions {
  readonly cert: string
  readonly key: string
  /** With an authority of clients, only those with a certificate of it are let in. */
  readonly ca?: string
  readonly requestCert?: boolean
}

export function tlsOptions(
  tls: NonNullable<NonNullable<Config['listen']>['tls']>,
  folder: string,
): TlsOptions {
  const read = (file: string) => readFileSync(resolve(folder, file), 'utf8')
  const { cert, key, clientCa } = tls
  return { cert: read(cert), key: read(key), ...(clientCa && { ca: read(clientCa), requestCert: true }) }
}

const DEFAULT_GRPC = '127.0.0.1:8081'

/** Where gRPC is answered; nowhere unless the configuration speaks of it. */
export function grpcAddressOf({ listen, envoy }: Config): string | undefined {
  const { grpc = envoy === undefined ? false : DEFAULT_GRPC } = listen ?? {}
  return grpc === false ? undefined : grpc
}
