// POST /v1/release and /v1/extend, for slots in a concurrency limit.

import type { AnyKey } from 'slidegate'
import { type Static, Type } from '../json-schema.ts'
import type { App, Context } from './context.ts'
import { checkPlan, limiterFor } from './requests.ts'
import { Cost, closed, Key, LimiterName, Plan, RequestId } from './schemas.ts'

const BodySchema = closed({
  limiter: LimiterName,
  key: Key,
  requestId: RequestId,
  cost: Type.Optional(Cost),
  plan: Type.Optional(Plan),
})
type Body = Static<typeof BodySchema>

const HeldSchema = closed({
  held: Type.Boolean({
    description:
      'Whether the slots were still held. If not, their `ttl` has passed, or they were already released.',
  }),
})

/** Routes for slots in `concurrency` limits. A slot is identified by the `requestId` of its request. */
export function holdRoutes(app: App, { service }: Context): void {
  const route = (action: 'release' | 'extend', summary: string, description: string): void => {
    app.post(
      `/v1/${action}`,
      {
        config: { role: 'check' },
        schema: {
          summary,
          description,
          tags: ['decisions'],
          body: BodySchema,
          response: { 200: HeldSchema },
        },
      },
      async ({ body, caller }) => {
        const { limiter, key, requestId, cost, plan } = body as Body
        const active = limiterFor(service, caller, limiter)
        checkPlan(active, plan)
        const held = await active.limiter[action](key as AnyKey, requestId, { cost, request: { plan } })
        return { held }
      },
    )
  }
  route(
    'release',
    'Release concurrency slots',
    'Releases the slots that a request holds in `concurrency` limits. Pass the same `key`, `requestId` and `cost` as to `/v1/consume`.',
  )
  route(
    'extend',
    'Renew concurrency slots',
    'Renews the slots that a request holds in `concurrency` limits, for another `ttl` from now.',
  )
}
