// POST /v1/peek and /v1/explain.

import { Type } from '../json-schema.ts'
import type { App, Context } from './context.ts'
import { announceState, decidedBody } from './decisions.ts'
import { limiterFor, optionsOf, type RequestBody } from './requests.ts'
import { Cost, closed, Key, LimiterName, Plan, shared, Value } from './schemas.ts'

const BodySchema = closed(
  {
    limiter: LimiterName,
    key: Key,
    cost: Type.Optional(Cost),
    value: Type.Optional(Value),
    plan: Type.Optional(Plan),
  },
  { examples: [{ limiter: 'api', key: 'ann' }] },
)

const ExplainSchema = closed(
  {
    limiter: LimiterName,
    key: Key,
    cost: Type.Optional(Cost),
    plan: Type.Optional(Plan),
    charges: Type.Optional(
      Type.Boolean({
        description:
          'Whether the charges that count are told one by one, as far as limits keep their times. Default: false.',
      }),
    ),
  },
  { examples: [{ limiter: 'api', key: 'ann' }] },
)

export function peekRoutes(app: App, { service }: Context): void {
  app.post(
    '/v1/peek',
    {
      config: { role: 'check' },
      schema: {
        summary: 'Look without charging',
        description:
          'What /v1/consume would answer now; remaining and resetAfterMs are those before any charge. Writes nothing. The status is 200 also where the request would be denied.',
        tags: ['decisions'],
        body: BodySchema,
        response: { 200: shared('Decision') },
      },
    },
    async ({ body, caller }, reply) => {
      const asked = body as RequestBody
      const active = limiterFor(service, caller, asked.limiter)
      const decision = await active.limiter.peek(asked.key, optionsOf(active, asked))
      announceState(reply, decision)
      return decidedBody(reply, asked.limiter, decision)
    },
  )
  app.post(
    '/v1/explain',
    {
      config: { role: 'read', isOpen: true },
      schema: {
        summary: 'Explain a key',
        description:
          'All that is known of a key: what is used of each limit and when it is free again, bans, overrides. Writes nothing. Of a limiter with dimensions the key may have some of them only.',
        tags: ['decisions'],
        body: ExplainSchema,
        response: { 200: shared('Explanation') },
      },
    },
    async ({ body, caller }) => {
      const { charges = false, ...asked } = body as RequestBody & { readonly charges?: boolean }
      const active = limiterFor(service, caller, asked.limiter)
      const explanation = await active.limiter.explain(asked.key, { ...optionsOf(active, asked), charges })
      return { limiter: asked.limiter, ...explanation }
    },
  )
}
