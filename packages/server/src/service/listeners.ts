// Listener addresses and certificates.

import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { messageOf } from '../../../replay/src/errors.ts'
import type { Config } from '../config/schema.ts'

/** Splits an address such as `127.0.0.1:8080` or `[::1]:8080` into host and port. */
export function addressOf(text: string): { readonly host: string; readonly port: number } {
  const colon = text.lastIndexOf(':')
  return { host: text.slice(0, colon).replace(/^\[(.*)\]$/, '$1'), port: Number(text.slice(colon + 1)) }
}

export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127\.\d+\.\d+\.\d+$/.test(host)
}

/** Returns an error for the operator if the service can't listen. */
export function listenError(name: 'http' | 'grpc', address: string, cause: unknown): Error {
  const message = messageOf(cause)
  const why = message.includes('EADDRINUSE') ? 'the address is already in use (EADDRINUSE)' : message
  const settings = `--${name}, SLIDEGATE_${name.toUpperCase()} or listen.${name}`
  return new Error(`can't listen on ${address}: ${why}; set another address with ${settings}`, { cause })
}

/** TLS options in the format of `node:https`. */
export interface TlsOptions {
  readonly cert: string
  readonly key: string
  /** CA for client certificates. If set, clients need a certificate from this CA. */
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

/** The gRPC address. Undefined if the configuration enables neither gRPC nor Envoy. */
export function grpcAddressOf({ listen, envoy }: Config): string | undefined {
  const { grpc = envoy === undefined ? false : DEFAULT_GRPC } = listen ?? {}
  return grpc === false ? undefined : grpc
}
