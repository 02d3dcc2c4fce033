// Nest's two platforms, Express and Fastify: how they are told apart, and how a verdict is carried out on either.
import { type IncomingHttpHeaders, STATUS_CODES } from 'node:http'
import { type ExecutionContext, HttpException, StreamableFile } from '@nestjs/common'
import { invalidOption, show } from '../../errors.ts'
import type { DenialAnswer } from '../../http/denial-message.ts'
import type { Binding, Guard } from '../../http/guard.ts'
import {
  drop,
  middleware,
  type NodeRequest,
  type NodeResponse,
  nodeBinding,
  ReplyFields,
  whenOver,
} from '../../http/node.ts'
import { type IsTrusted, unlessAnybody, unlessSpoofed } from '../../http/trust.ts'

/** What requests of both have. */
export interface HttpRequest {
  readonly headers: IncomingHttpHeaders
  readonly method: string
  readonly url: string
  readonly ip?: string | undefined
}

/** What responses of both have. */
export interface HttpResponse {
  status(code: number): HttpResponse
  header(name: string, value: string): HttpResponse
  getHeader(name: string): number | string | string[] | undefined
  removeHeader(name: string): unknown
  send(body?: unknown): unknown
}

/** What functions among the options are given; those that tell something of a request get the first only. */
export type NestArguments<Request = HttpRequest, Response = HttpResponse> = [
  request: Request,
  response: Response,
  context: ExecutionContext,
]

interface ExpressRequest extends HttpRequest {
  readonly app: { get(setting: 'trust proxy fn'): IsTrusted }
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
  const ofExpress = unlessAnybody<ExpressRequest>(
    "'trust proxy'",
    (req) => req.app.get('trust proxy fn'),
    (req) => req.ip,
  )
  // Fastify's setting stands nowhere to be read.
  const ofFastify = unlessSpoofed<HttpRequest>('trustProxy')
  return {
    ...node,
    address: (request, response) =>
      isFastify(response) ? ofFastify(request) : ofExpress(request as ExpressRequest),
  }
}

/** Tells the request and the response of what Nest is about to handle. */
export type RequestOf<Request = HttpRequest, Response = HttpResponse> = (
  context: ExecutionContext,
) => readonly [request: Request, response: Response]

/** Of handlers that serve anything but HTTP Nest does not know where these are. */
export const httpOf: RequestOf = (context) => {
  if (context.getType() !== 'http') {
    throw invalidOption(
      `a handler of ${show(context.getType())} has no request to limit; say in requestOf where it is, or put @SkipRateLimit() on it`,
      context.getType(),
    )
  }
  const http = context.switchToHttp()
  return [http.getRequest(), http.getResponse()]
}

type Passing = [...handler: NestArguments, next: (error?: Error) => void]

const enter = middleware<Passing>({
  fields: (_, response) => new ReplyFields(response),
  whenOver: (over, _, response) => whenOver(rawOf(response), over, new ReplyFields(response)),
  answer(answer, _, response) {
    // What the answer is, only the filter knows that answers.
    for (const each of [response, rawOf(response)]) each.removeHeader(CONTENT_TYPE)
    throw new RateLimitException(answer)
  },
  drop: (_, response) => drop(rawOf(response)),
  next: (_request, _response, _context, next) => next,
})

/** Resolves for admitted requests. Those that are answered here, or whose connection is closed, go nowhere. */
export function pass(guard: Guard<NestArguments>, ...args: NestArguments): Promise<true> {
  return new Promise((resolve, reject) => {
    enter(
      () => guard(...args),
      ...args,
      (error) => (error === undefined ? resolve(true) : reject(error)),
    )
  })
}

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

const CONTENT_TYPE = 'Content-Type'

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
