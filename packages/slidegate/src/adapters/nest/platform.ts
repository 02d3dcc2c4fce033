import type { IncomingHttpHeaders } from 'node:http'
import type { ExecutionContext } from '@nestjs/common'
import type { Binding } from '../../http/binding.ts'
import { type NodeRequest, type NodeResponse, nodeBinding } from '../../http/node.ts'
import { type IsTrusted, unlessAnybody, unlessSpoofed } from '../../http/trust.ts'

// The two platforms: what they have in common, and how they are told apart.

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
