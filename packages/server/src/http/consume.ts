import type { AnyKey, Decision } from 'slidegate'
import Type, { type Static } from 'typebox'
import type { App } from './app.ts'
import type { Context } from './context.ts'

const RequestSchema = Type.Object(
  {
    limiter: Type.String(),
    key: Type.Union([Type.String(), Type.Record(Type.String(), Type.Union([Type.String(), Type.Null()]))]),
    cost: Type.Optional(Type.Integer({ minimum: 1 })),
  },
  { additionalProperties: false },
)
type ConsumeRequest = Static<typeof RequestSchema>

export function consumeRoutes(app: App, { service }: Context): void {
  app.post(
    '/v1/consume',
    { config: { role: 'check' }, schema: { body: RequestSchema } },
    async (request, reply) => {
      const { limiter, key, cost } = request.body as ConsumeRequest
      request.caller.mustReach(limiter)
      const decision: Decision = await service.get(limiter).limiter.consume(key as AnyKey, { cost })
      reply.code(decision.allowed ? 200 : 429)
      return decision
    },
  )
}
