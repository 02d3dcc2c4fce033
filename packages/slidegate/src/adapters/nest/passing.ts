import type { ExecutionContext } from '@nestjs/common'
import { invalidOption, show } from '../../errors.ts'
import { gate } from '../../http/gate.ts'
import type { Guard } from '../../http/guard.ts'
import { drop, ReplyFields, whenOver } from '../../http/node.ts'
import { CONTENT_TYPE, RateLimitException } from './exception.ts'
import { type HttpRequest, type HttpResponse, type NestArguments, rawOf } from './platform.ts'

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

const enter = gate<Passing>({
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
