// POST /v1/store, which library clients use as their store.

import { type ServedStore, serveStore } from 'slidegate/client'
import { Type } from '../json-schema.ts'
import type { Caller } from '../service/gatekeeper.ts'
import type { Service } from '../service/service.ts'
import { ServiceError } from '../service/service-error.ts'
import type { App, Context } from './context.ts'

/** Limiter names reserved for the service: its readiness probe, and Envoy's domains. */
const OWN = /^(slidegate|envoy)(\.|$)/

/** Any object, because the format depends on the version. `serve` validates the body. */
const BodySchema = Type.Object({}, { description: 'Version of the format, limits, and operations on keys.' })
const AnswerSchema = Type.Object(
  { version: Type.Integer(), outcomes: Type.Array(Type.Unknown()) },
  { description: 'The outcomes, in the order of the operations.' },
)

/** Serves the library's `serviceStore`. Callers send operations together with the limits to apply. */
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
        summary: 'Act as the store of a library client',
        description:
          'Used by `serviceStore()` of `slidegate/client`, with its own format. The caller declares its own limiters. The `ownLimiters` of its token must allow their names.',
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
    `${caller.name} can't declare the limits of ${JSON.stringify(limiter)}; the ownLimiters of its token must allow this name, and the configuration must not have a limiter with this name`,
  )
}
