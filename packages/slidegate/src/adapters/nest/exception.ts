import { STATUS_CODES } from 'node:http'
import { HttpException, StreamableFile } from '@nestjs/common'
import type { DenialAnswer } from '../../http/denial-body.ts'

/**
 * What denied requests end in, for exception filters. Nest's own filter answers it as all adapters do; one of yours may answer
 * something else: the rate limit headers and `Retry-After` are set by then, whoever answers. `getStatus()` is 429, 503
 * where the store gave no answer, or 403 for an address of `deny`; `getResponse()` is read as `{ statusCode, message }`.
 */
export class RateLimitException extends HttpException {
  constructor({ status, headers, body }: DenialAnswer) {
    const type = headers.find(({ name }) => name === CONTENT_TYPE)?.value
    super(new DenialBody(status, type, body), status)
  }
}

export const CONTENT_TYPE = 'Content-Type'

/** Nest sends a `StreamableFile` as it is, on each platform; any other body it would make JSON, and say so. */
class DenialBody extends StreamableFile {
  declare readonly statusCode: number
  declare readonly message: string

  constructor(status: number, type: string | undefined, body: string) {
    super(Buffer.from(body), { ...(type !== undefined && { type }) })
    // Filters print or spread what they answer: not the stream.
    for (const name of Object.keys(this)) Object.defineProperty(this, name, { enumerable: false })
    Object.assign(this, { statusCode: status, message: STATUS_CODES[status] })
  }
}
