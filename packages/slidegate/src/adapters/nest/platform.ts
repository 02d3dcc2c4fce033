// Detects whether Nest runs on Express or Fastify, and responds to denied requests on either.
import { type IncomingHttpHeaders, STATUS_CODES } from 'node:http'
import { type ExecutionContext, HttpException, StreamableFile } from '@nestjs/common'
import { invalidOption, show } from '../../errors.ts'
import type { DenialResponse } from '../../http/denial-message.ts'
import type { Binding, Guard } from '../../http/guard.ts'
import { enter, FrameworkReply, type NodeRequest, type NodeResponse, nodeBinding } from '../../http/node.ts'
import {
  expressProxySetting,
  fastifyProxySetting,
  type IsTrusted,
  unlessSpoofed,
  unlessTrustsEveryone,
} from '../../http/trust.ts'

/** A request on either platform. */
export interface HttpRequest {
  readonly headers: IncomingHttpHeaders
  readonly method: string
  readonly url: string
  readonly ip?: string | undefined
}

/** A response on either platform. */
export interface HttpResponse {
  status(code: number): HttpResponse
  header(name: string, value: string): HttpResponse
  getHeader(name: string): number | string | string[] | undefined
  removeHeader(name: string): unknown
  send(body?: unknown): unknown
}

/** The arguments of functions in the options. Most receive only the request. */
export type NestArguments<Request = HttpRequest, Response = HttpResponse> = [
  request: Request,
  response: Response,
  context: ExecutionContext,
]

interface ExpressRequest extends HttpRequest {
  readonly app: { get(setting: 'trust proxy fn'): IsTrusted; get(setting: 'trust proxy'): unknown }
}

interface FastifyReply extends HttpResponse {
  readonly request: HttpRequest & { readonly raw: NodeRequest }
  readonly raw: NodeResponse
  readonly hijack: unknown
}

function isFastify(response: HttpResponse): response is FastifyReply {
  return typeof (response as Partial<FastifyReply>).hijack === 'function'
}

export function rawOf(response: HttpResponse): NodeResponse {
  return isFastify(response) ? response.raw : (response as unknown as NodeResponse)
}

export function httpBinding(): Binding<NestArguments> {
  const node = nodeBinding<NestArguments>(
    (request, response) => (isFastify(response) ? response.request.raw : (request as unknown as NodeRequest)),
    (_, response) => rawOf(response),
  )
  const ofExpress = unlessTrustsEveryone<ExpressRequest>(
    "'trust proxy'",
    (req) => req.app.get('trust proxy fn'),
    (req) => req.ip,
  )
  // Fastify doesn't expose `trustProxy`, so the setting is tested with a forged request.
  const ofFastify = unlessSpoofed<HttpRequest>('trustProxy')
  return {
    ...node,
    address: (request, response) =>
      isFastify(response) ? ofFastify(request) : ofExpress(request as ExpressRequest),
    proxySetting: (request, response) =>
      isFastify(response)
        ? fastifyProxySetting(request)
        : expressProxySetting((request as ExpressRequest).app),
    // The resolvers of a GraphQL query share one request.
    sharesRequests: true,
  }
}

/** Returns the request and the response for a call. */
export type RequestOf<Request = HttpRequest, Response = HttpResponse> = (
  context: ExecutionContext,
) => readonly [request: Request, response: Response]

/** Returns the request and response for an HTTP handler. */
export const httpOf: RequestOf = (context) => {
  if (context.getType() !== 'http') {
    throw invalidOption(
      `a handler of type ${show(context.getType())} has no HTTP request; set requestOf or add @SkipRateLimit()`,
      context.getType(),
    )
  }
  const http = context.switchToHttp()
  return [http.getRequest(), http.getResponse()]
}

class Reply extends FrameworkReply<HttpResponse> {
  get raw(): NodeResponse {
    return rawOf(this.own)
  }

  answer(answer: DenialResponse): never {
    // Removes the content type, because the exception filter sets its own.
    for (const each of [this.own, this.raw]) each.removeHeader(CONTENT_TYPE)
    throw new RateLimitException(answer)
  }
}

/** Resolves for admitted requests. Stays pending if the guard responds or closes the connection. */
export function pass(guard: Guard<NestArguments>, ...args: NestArguments): Promise<true> {
  return new Promise((resolve, reject) => {
    enter(guard, args, new Reply(args[1]), (error) => (error === undefined ? resolve(true) : reject(error)))
  })
}

/**
 * Thrown for denied requests. Nest's built-in filter then responds like the other adapters. Your own filter can respond
 * differently.
 *
 * The rate limit headers and `Retry-After` are already set. `getStatus()` returns 429, 503 if the store is unavailable, or 403
 * for an address in `deny`. `getResponse()` returns an object with `statusCode` and `message`.
 */
export class RateLimitException extends HttpException {
  constructor({ status, headers, body }: DenialResponse) {
    const type = headers.find(({ name }) => name === CONTENT_TYPE)?.value
    super(new DenialBody(status, type, body), status)
  }
}

const CONTENT_TYPE = 'Content-Type'

/** Nest sends a `StreamableFile` unchanged, but would convert any other body to JSON. */
class DenialBody extends StreamableFile {
  declare readonly statusCode: number
  declare readonly message: string

  constructor(status: number, type: string | undefined, body: string) {
    super(Buffer.from(body), { ...(type !== undefined && { type }) })
    // Hides the stream from filters that log or spread the response.
    for (const name of Object.keys(this)) Object.defineProperty(this, name, { enumerable: false })
    Object.assign(this, { statusCode: status, message: STATUS_CODES[status] })
  }
}
