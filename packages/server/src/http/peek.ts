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
          'Whether to list charges one by one, for limits that store the time of each charge. Default: false.',
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
        summary: 'Check a request without charging it',
        description:
          'Returns the decision that `/v1/consume` would return, with `remaining` and `resetAfterMs` before the charge. Writes nothing. The status is 200 even if the request would be denied.',
        tags: ['decisions'],
        body: BodySchema,
        response: { 200: shared('Decision') },
      },
    },
    async ({ body, caller }, reply) => {
      const request = body as RequestBody
      const active = limiterFor(service, caller, request.limiter)
      const decision = await active.limiter.peek(request.key, optionsOf(active, request))
      announceState(reply, decision)
      return decidedBody(reply, request.limiter, decision)
    },
  )
  app.post(
    '/v1/explain',
    {
      config: { role: 'read', isOpen: true },
      schema: {
        summary: 'Explain a key',
        description:
          "Returns the state of a key: each limit's usage, when its units become free, the bans, and the overrides. Writes nothing. For a limiter with dimensions, you can pass a subset of them.",
        tags: ['decisions'],
        body: ExplainSchema,
        response: { 200: shared('Explanation') },
      },
    },
    async ({ body, caller }) => {
      const { charges = false, ...request } = body as RequestBody & { readonly charges?: boolean }
      const active = limiterFor(service, caller, request.limiter)
      const explanation = await active.reader.explain(request.key, {
        ...optionsOf(active, request),
        charges,
      })
      return { limiter: request.limiter, ...explanation }
    },
  )
}
