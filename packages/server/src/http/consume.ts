import type { FastifyReply } from 'fastify'
import Type, { type Static } from 'typebox'
import type { Caller } from '../service/gatekeeper.ts'
import type { Service } from '../service/service.ts'
import { ServiceError } from '../service/service-error.ts'
import { consumeAll, type Item } from './consume-all.ts'
import type { App, Context } from './context.ts'
import { decided, decisionsBody } from './decisions.ts'
import { limiterFor, optionsOf, type RequestBody } from './requests.ts'
import { reserve } from './reservations.ts'
import { Cost, closed, Key, LimiterName, Plan, problemAnswer, RequestId, shared, Value } from './schemas.ts'

const request = {
  key: Key,
  cost: Type.Optional(Cost),
  requestId: Type.Optional(RequestId),
  value: Type.Optional(Value),
  plan: Type.Optional(Plan),
}

const OneSchema = closed(
  {
    limiter: LimiterName,
    ...request,
    refundable: Type.Optional(
      Type.Boolean({
        description: 'Whether the answer is to have a token for /v1/refund. Only where all limits keep sums.',
      }),
    ),
  },
  { description: 'One request.', examples: [{ limiter: 'api', key: 'ann' }] },
)

const DEFAULT_REQUESTS = 1000

/** Limits of all requests of a call, for each request that it may have; and those of the largest limiter. */
const LIMITS_PER_REQUEST = 4
const LARGEST_LIMITER = 1024
/** Units of limits that keep each unit, for all requests of a call. */
const MAX_KEPT_UNITS = 10_000

const ManySchema = closed(
  {
    limiter: Type.Optional(LimiterName),
    requests: Type.Array(closed({ limiter: Type.Optional(LimiterName), ...request }), {
      description: `Up to caps.requestsPerCall of the configuration, ${DEFAULT_REQUESTS} by default; each may have its own limiter.`,
    }),
  },
  {
    description: 'Many requests, each decided on its own.',
    examples: [{ limiter: 'api', requests: [{ key: 'ann' }, { limiter: 'login', key: 'bob', cost: 2 }] }],
  },
)

export const ConsumeBody = Type.Union([OneSchema, ManySchema])
type One = RequestBody & Pick<Static<typeof OneSchema>, 'refundable'>
type Many = Static<typeof ManySchema>

const Decisions = closed(
  { decisions: Type.Array(shared('Decision')) },
  { description: 'The decisions, in the order of the requests.' },
)

const ALLOWED = 'All are allowed.'
const DENIED = 'Denied: the request, or one at least of many. Those that are allowed are charged.'

export function consumeRoutes(app: App, { service }: Context): void {
  const isLocal = service.store.applySync !== undefined
  app.post(
    '/v1/consume',
    {
      config: { role: 'check' },
      schema: {
        summary: 'Charge one request, or many',
        description: 'Charges each request to all limits of its key if all have room, else to none.',
        tags: ['decisions'],
        body: ConsumeBody,
        response: {
          200: Type.Union([shared('RefundableDecision'), Decisions], { description: ALLOWED }),
          429: Type.Union([shared('RefundableDecision'), Decisions], {
            description: DENIED,
          }),
          422: problemAnswer('A request comes again with its requestId, and costs more than it was charged.'),
        },
      },
    },
    ({ body, caller }, reply) => {
      if ('requests' in (body as object)) return many(service, caller, body as Many, reply)
      const one = body as One
      if (one.refundable === true) return refundable(service, caller, one, reply)
      const active = limiterFor(service, caller, one.limiter)
      const options = optionsOf(active, one)
      // A store in this process has the answer at once.
      if (isLocal) return decided(reply, one.limiter, active.limiter.consumeSync(one.key, options))
      // The framework would wait for a promise by two more: at full load, promises are what a decision costs.
      active.limiter.consume(one.key, options).then(
        (decision) => reply.send(decided(reply, one.limiter, decision)),
        (error: unknown) => reply.send(error),
      )
    },
  )
}

async function refundable(service: Service, caller: Caller, one: One, reply: FastifyReply): Promise<unknown> {
  const { limiter: name, key, cost = 1, requestId, value, plan } = one
  if (requestId !== undefined || value !== undefined) {
    throw new ServiceError(
      400,
      'invalid_request',
      'refundable goes with limits that keep sums only; requestId and value go with others',
    )
  }
  const { decision, token } = await reserve(limiterFor(service, caller, name), key, cost, plan)
  return decided(reply, name, decision, { refundToken: token })
}

async function many(service: Service, caller: Caller, body: Many, reply: FastifyReply): Promise<unknown> {
  const most = service.config.caps?.requestsPerCall ?? DEFAULT_REQUESTS
  const { length } = body.requests
  if (length > most) {
    throw new ServiceError(
      413,
      'too_many_requests',
      `the call has ${length} requests; it must have ${most} at most`,
    )
  }
  const items = body.requests.map((each, i): Item => {
    const name = each.limiter ?? body.limiter
    if (name === undefined) {
      throw new ServiceError(400, 'invalid_request', `requests[${i}] has no limiter, nor has the body`)
    }
    const active = limiterFor(service, caller, name)
    return { active, request: { ...optionsOf(active, each as RequestBody), key: each.key } }
  })
  const limits = items.reduce((sum, { active }) => sum + active.declared.limitCount, 0)
  const mostLimits = Math.max(LIMITS_PER_REQUEST * most, LARGEST_LIMITER)
  if (limits > mostLimits) {
    throw new ServiceError(
      413,
      'too_many_requests',
      `the requests of the call have ${limits} limits; they must have ${mostLimits} at most: send several calls`,
    )
  }
  const kept = items.filter(({ active }) => active.declared.keepsUnits)
  // A larger cost is always denied, and takes no time.
  const units = kept.reduce((sum, { request: { cost = 1 } }) => sum + (cost > MAX_KEPT_UNITS ? 0 : cost), 0)
  if (kept.length > 1 && units > MAX_KEPT_UNITS) {
    throw new ServiceError(
      413,
      'too_many_requests',
      `the call costs ${units} units of limits that keep each unit; it must cost at most ${MAX_KEPT_UNITS}: send several calls`,
    )
  }
  const decisions = await consumeAll(items)
  if (!decisions.every(({ allowed }) => allowed)) reply.code(429)
  return decisionsBody(
    reply,
    decisions.map((decision, i) => ({ limiter: items[i]!.active.limiter.name, decision })),
  )
}
