// The request that a gateway asks about.

import type { IncomingMessage } from 'node:http'
import { ServiceError } from '../service/service-error.ts'
import { lowerCase, readingsOf } from './path.ts'

/** Of requests with more headers Node drops the last, which may be those of the gateway. */
const MAX_HEADERS = 1000
const HOST = /^(?:[a-z0-9._-]*|\[[0-9a-f:.]+\])$/
const METHOD = /^[A-Z][A-Z_-]{0,31}$/

/** The request that a gateway asks about, by what the gateway tells of it. */
export class OriginalRequest {
  readonly method: string
  /** In lower case, without port; empty where there is none. */
  readonly host: string
  /** See {@link readingsOf}. */
  readonly readings: readonly string[]
  readonly message: IncomingMessage

  /** @throws {ServiceError} `bad_gateway_request`, where the gateway does not tell it; `unreadable_request`, where nobody knows what it is */
  constructor(message: IncomingMessage) {
    this.message = message
    if (message.rawHeaders.length >= 2 * MAX_HEADERS) throw unreadable('it has too many headers')
    this.method = this.told('x-forwarded-method').toUpperCase()
    if (!METHOD.test(this.method)) throw unreadable('its method is none')
    const readings = readingsOf(this.told('x-forwarded-uri'))
    if (readings === undefined) throw unreadable('its path has characters that servers read differently')
    this.readings = readings
    this.host = hostOf(this.told('x-forwarded-host', ''))
  }

  /** The path that a key is made of: in the reading that makes the fewest differences. */
  get path(): string {
    const [path = ''] = this.readings
    return Buffer.from(path.replace(/(?<=.)\/$/, ''), 'latin1').toString('utf8')
  }

  /** A header of the client; nothing where it is missing, or where there are several, of which nobody knows which counts. */
  header(name: string): string | undefined {
    const values = this.message.headersDistinct[name]
    return values?.length === 1 && values[0] !== '' ? values[0] : undefined
  }

  /** A cookie of the client, decoded; likewise. */
  cookie(name: string): string | undefined {
    const values = (this.message.headers.cookie ?? '').split(';').flatMap((pair) => {
      const equals = pair.indexOf('=')
      return equals >= 0 && pair.slice(0, equals).trim() === name ? [pair.slice(equals + 1).trim()] : []
    })
    const [value = ''] = values
    if (values.length !== 1) return undefined
    return decoded(value.replace(/^"(.*)"$/, '$1')) || undefined
  }

  /**
   * What the gateway tells. What is told twice was told by somebody else, too.
   *
   * @throws {ServiceError} `bad_gateway_request`
   */
  told(name: string, otherwise?: string): string {
    const values = this.message.headersDistinct[name]
    if (values?.length === 1) return values[0]!
    if (values === undefined && otherwise !== undefined) return otherwise
    const what = values === undefined ? 'is missing' : 'is there several times'
    throw new ServiceError(400, 'bad_gateway_request', `${name} ${what}: the gateway has to set it, once`)
  }
}

function hostOf(told: string): string {
  const host = lowerCase(told.trim()).replace(/:\d*$/, '').replace(/\.$/, '')
  if (!HOST.test(host)) throw unreadable('its host is none')
  return host
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

function unreadable(why: string): ServiceError {
  return new ServiceError(403, 'unreadable_request', `the request cannot be told from others: ${why}`)
}
