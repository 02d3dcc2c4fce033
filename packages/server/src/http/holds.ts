// POST /v1/release and /v1/extend, for slots of a concurrency limit.

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
    description: 'Whether it was still held: else its ttl had passed, or it was released before.',
  }),
})

/** What requests hold of `concurrency` limits, by the ids that they were consumed with. */
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
    'Free what a request holds',
    'Frees what a request has taken of concurrency limits: key, requestId and cost are those that it was consumed with.',
  )
  route(
    'extend',
    'Hold it for longer',
    'What the request has taken of concurrency limits is held for their ttl from now on.',
  )
}
