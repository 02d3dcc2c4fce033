import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import type { Config } from '../config/schema.ts'
import type { TlsOptions } from '../http/app.ts'

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
