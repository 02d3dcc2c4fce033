// The client's request, as described by a gateway's headers.

import type { IncomingMessage } from 'node:http'
import { ServiceError } from '../service/service-error.ts'
import { lowerCase, readingsOf } from './path.ts'

/** Node drops headers beyond this number, which may include the gateway's own. */
const MAX_HEADERS = 1000
const HOST = /^(?:[a-z0-9._-]*|\[[0-9a-f:.]+\])$/
const METHOD = /^[A-Z][A-Z_-]{0,31}$/

export class OriginalRequest {
  readonly method: string
  /** In lower case and without the port. Empty if missing. */
  readonly host: string
  /** See {@link readingsOf}. */
  readonly readings: readonly string[]
  readonly message: IncomingMessage

  /**
   * @throws {ServiceError} `bad_gateway_request` for bad gateway headers; `unreadable_request` for an ambiguous request
   */
  constructor(message: IncomingMessage) {
    this.message = message
    if (message.rawHeaders.length >= 2 * MAX_HEADERS) throw unreadable('it has too many headers')
    this.method = this.gatewayHeader('x-forwarded-method').toUpperCase()
    if (!METHOD.test(this.method)) throw unreadable('its method is invalid')
    const readings = readingsOf(this.gatewayHeader('x-forwarded-uri'))
    if (readings === undefined) throw unreadable('its path has characters that servers interpret differently')
    this.readings = readings
    this.host = hostOf(this.gatewayHeader('x-forwarded-host', ''))
  }

  /** The path to use in keys: the first reading. More spellings of the path share it than any other. */
  get path(): string {
    const [path = ''] = this.readings
    return Buffer.from(path.replace(/(?<=.)\/$/, ''), 'latin1').toString('utf8')
  }

  /** A client's header. Undefined if it is missing or repeated, because repeated values are ambiguous. */
  header(name: string): string | undefined {
    const values = this.message.headersDistinct[name]
    return values?.length === 1 && values[0] !== '' ? values[0] : undefined
  }

  /** A client's decoded cookie. Undefined if it is missing or repeated. */
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
   * Returns a header set by the gateway. A repeated header is rejected, because then the client has sent one, too.
   *
   * @throws {ServiceError} `bad_gateway_request`
   */
  gatewayHeader(name: string, otherwise?: string): string {
    const values = this.message.headersDistinct[name]
    if (values?.length === 1) return values[0]!
    if (values === undefined && otherwise !== undefined) return otherwise
    const what = values === undefined ? 'is missing' : 'is repeated'
    throw new ServiceError(
      400,
      'bad_gateway_request',
      `${name} ${what}: the gateway must set it exactly once`,
    )
  }
}

function hostOf(header: string): string {
  const host = lowerCase(header.trim()).replace(/:\d*$/, '').replace(/\.$/, '')
  if (!HOST.test(host)) throw unreadable('its host is invalid')
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
  return new ServiceError(403, 'unreadable_request', `can't interpret the request: ${why}`)
}
