// POST /v1/store, for stores of the library.

import { type ServedStore, serveStore } from 'slidegate/client'
import { Type } from '../json-schema.ts'
import type { Caller } from '../service/gatekeeper.ts'
import type { Service } from '../service/service.ts'
import { ServiceError } from '../service/service-error.ts'
import type { App, Context } from './context.ts'

/** Names of limiters that the service has for itself: the probe of readiness, and those of Envoy's domains. */
const OWN = /^(slidegate|envoy)(\.|$)/

/** `serve` checks all of it, the version first: in another version the rest may look different. */
const BodySchema = Type.Object({}, { description: 'The version of the format, limits, and ops on keys.' })
const AnswerSchema = Type.Object(
  { version: Type.Integer(), outcomes: Type.Array(Type.Unknown()) },
  { description: 'The outcomes, in the order of the ops.' },
)

/** What `serviceStore` of the library asks: ops of limiters whose limits the caller declares himself. */
export function storeRoutes(app: App, { service, gatekeeper }: Context): void {
  const { timeoutMs } = service.config.store ?? {}
  const serve: ServedStore = serveStore(
    (limiter) => service.ownStores.of(limiter, gatekeeper.ownPatterns),
    timeoutMs === undefined ? {} : { timeoutMs },
  )
  app.post(
    '/v1/store',
    {
      config: { role: 'check' },
      schema: {
        summary: 'The store of a library',
        description:
          'What serviceStore() of slidegate/client sends, in a format of its own. The limits are those of the caller, for limiters that ownLimiters of his token names.',
        tags: ['decisions'],
        body: BodySchema,
        response: { 200: AnswerSchema },
      },
    },
    ({ body, caller }) => serve(body, (limiter) => mustDeclare(service, caller, limiter)),
  )
}

/** @throws {ServiceError} `forbidden` */
function mustDeclare(service: Service, caller: Caller, limiter: string): void {
  if (!OWN.test(limiter) && !service.has(limiter) && caller.declares(limiter)) return
  throw new ServiceError(
    403,
    'forbidden',
    `${caller.name} may not declare the limits of ${JSON.stringify(limiter)}; ownLimiters of a token says of which it may, and never of those of the configuration`,
  )
}
