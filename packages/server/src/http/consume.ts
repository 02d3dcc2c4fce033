// POST /v1/consume, for one request or several.

import type { FastifyReply } from 'fastify'
import { type AnyKey, type BulkRequest, type Decision, SlidegateError } from 'slidegate'
import { type Static, Type } from '../json-schema.ts'
import type { Caller } from '../service/gatekeeper.ts'
import type { ActiveLimiter, Service } from '../service/service.ts'
import { ServiceError } from '../service/service-error.ts'
import type { App, Context } from './context.ts'
import { decided, decisionsBody, deniedStatus } from './decisions.ts'
import { limiterFor, optionsOf, type RequestBody } from './requests.ts'
import { reserve } from './reservations.ts'
import {
  Cost,
  closed,
  deniedWithoutStore,
  Key,
  LimiterName,
  Plan,
  problemAnswer,
  RequestId,
  shared,
  Value,
} from './schemas.ts'

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
        description:
          'Whether to return a token for `/v1/refund`. Not available for limits that store each request: `log: zset`, `log: stream`, `concurrency`, `distinct`.',
      }),
    ),
  },
  { description: 'One request.', examples: [{ limiter: 'api', key: 'ann' }] },
)

const DEFAULT_REQUESTS = 1000

/** A body may use this many limits times `caps.requestsPerCall`, or `LARGEST_LIMITER` if that is more. */
const LIMITS_PER_REQUEST = 4
/** Maximum number of limits in a limiter. */
const LARGEST_LIMITER = 1024
/** Maximum total cost of all `requests`, for limits that store each unit. */
const MAX_KEPT_UNITS = 10_000

const ManySchema = closed(
  {
    limiter: Type.Optional(LimiterName),
    requests: Type.Array(closed({ limiter: Type.Optional(LimiterName), ...request }), {
      description: `The requests. Requests without a limiter use the body's limiter. The maximum number is \`caps.requestsPerCall\` in the configuration, by default ${DEFAULT_REQUESTS}.`,
    }),
  },
  {
    description: 'Many requests, decided independently.',
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

const ALLOWED = 'All requests are allowed.'
const DENIED = 'At least one request is denied. Allowed requests are charged.'

export function consumeRoutes(app: App, { service }: Context): void {
  const isLocal = service.store.applySync !== undefined
  app.post(
    '/v1/consume',
    {
      config: { role: 'check' },
      schema: {
        summary: 'Consume quota',
        description:
          'Decides on one request or many. Charges each request to all limits for its key, or to none if one of them denies it.',
        tags: ['decisions'],
        body: ConsumeBody,
        response: {
          200: Type.Union([shared('RefundableDecision'), Decisions], { description: ALLOWED }),
          429: Type.Union([shared('RefundableDecision'), Decisions], {
            description: DENIED,
          }),
          503: deniedWithoutStore(Type.Union([shared('RefundableDecision'), Decisions])),
          422: problemAnswer('A `requestId` was reused with a higher cost.'),
        },
      },
    },
    ({ body, caller }, reply) => {
      if ('requests' in (body as object)) return many(service, caller, body as Many, reply)
      const one = body as One
      if (one.refundable === true) return refundable(service, caller, one, reply)
      const active = limiterFor(service, caller, one.limiter)
      const options = optionsOf(active, one)
      // A store in this process decides synchronously.
      if (isLocal) return decided(reply, one.limiter, active.limiter.consumeSync(one.key, options))
      // Doesn't return the promise: Fastify would create two more to await it, and under load, promises cost the most.
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
    throw new ServiceError(400, 'invalid_request', "refundable can't be combined with requestId or value")
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
      'batch_too_large',
      `the body has ${length} requests; at most ${most} are allowed`,
    )
  }
  const items = body.requests.map((each, i): Item => {
    const name = each.limiter ?? body.limiter
    if (name === undefined) {
      throw new ServiceError(
        400,
        'invalid_request',
        `requests[${i}] has no limiter, and neither does the body`,
      )
    }
    const active = limiterFor(service, caller, name)
    return { active, request: { ...optionsOf(active, each as RequestBody), key: each.key } }
  })
  const limits = items.reduce((sum, { active }) => sum + active.declared.limitCount, 0)
  const mostLimits = Math.max(LIMITS_PER_REQUEST * most, LARGEST_LIMITER)
  if (limits > mostLimits) {
    throw new ServiceError(
      413,
      'batch_too_large',
      `the requests use ${limits} limits; at most ${mostLimits} are allowed: send several calls`,
    )
  }
  const kept = items.filter(({ active }) => active.declared.keepsUnits)
  // Larger costs don't count, because they are always denied, which is cheap.
  const units = kept.reduce((sum, { request: { cost = 1 } }) => sum + (cost > MAX_KEPT_UNITS ? 0 : cost), 0)
  if (kept.length > 1 && units > MAX_KEPT_UNITS) {
    throw new ServiceError(
      413,
      'batch_too_large',
      `the total cost for limits that store each unit is ${units} units; at most ${MAX_KEPT_UNITS} are allowed: send several calls`,
    )
  }
  const decisions = await consumeAll(items)
  if (!decisions.every(({ allowed }) => allowed)) reply.code(deniedStatus(decisions))
  return decisionsBody(
    reply,
    decisions.map((decision, i) => ({ limiter: items[i]!.active.limiter.name, decision })),
  )
}

/** A request and its limiter. */
interface Item {
  readonly active: ActiveLimiter
  readonly request: BulkRequest<AnyKey>
}

/**
 * Decides on requests for several limiters. Validates all requests before it sends any. Each limiter sends its requests
 * in one batch.
 *
 * If the store fails for one limiter, the charges to the others are refunded, except for requests with an ID,
 * because these may be retried.
 */
async function consumeAll(items: readonly Item[]): Promise<readonly Decision[]> {
  const groups = new Map<ActiveLimiter, Item[]>()
  for (const item of items) {
    const group = groups.get(item.active)
    if (group === undefined) groups.set(item.active, [item])
    else group.push(item)
  }
  try {
    // For a single limiter, consumeMany checks all requests first, and refunds them after a failure.
    if (groups.size === 1)
      return await items[0]!.active.limiter.consumeMany(items.map(({ request }) => request))
    await Promise.all(Array.from(groups, ([active, group]) => check(active, group)))
    const decisions = await consumeGroups(Array.from(groups))
    return items.map((item) => decisions.get(item)!)
  } catch (error) {
    throw error instanceof SlidegateError ? await located(items, error) : error
  }
}

async function consumeGroups(
  groups: readonly (readonly [ActiveLimiter, readonly Item[]])[],
): Promise<ReadonlyMap<Item, Decision>> {
  const settled = await Promise.allSettled(
    groups.map(([{ limiter }, group]) => limiter.consumeMany(group.map(({ request }) => request))),
  )
  const decisions = new Map<Item, Decision>()
  groups.forEach(([, group], i) => {
    const outcome = settled[i]!
    if (outcome.status === 'fulfilled')
      group.forEach((item, j) => void decisions.set(item, outcome.value[j]!))
  })
  const failed = settled.find((outcome) => outcome.status === 'rejected')
  if (failed === undefined) return decisions
  await Promise.allSettled(Array.from(decisions, ([item, decision]) => giveBack(item, decision)))
  throw failed.reason
}

async function giveBack({ active, request }: Item, decision: Decision): Promise<void> {
  if (decision.allowed && request.requestId === undefined) await active.limiter.refund(request.key, decision)
}

/** Thrown by the last request in a check, to stop before any request is sent. */
const CHECKED = Symbol('all requests are valid')
const LAST = {
  key: '',
  get cost(): number {
    throw CHECKED
  },
}

/** Validates requests without sending any. @throws {SlidegateError} for the first invalid one */
async function check({ limiter }: ActiveLimiter, items: readonly Item[]): Promise<void> {
  try {
    await limiter.consumeMany([...items.map(({ request }) => request), LAST])
  } catch (error) {
    if (error !== CHECKED) throw error
  }
}

/** Adds the index of the invalid request to an error. */
async function located(items: readonly Item[], error: SlidegateError): Promise<SlidegateError> {
  for (const [i, item] of items.entries()) {
    try {
      await check(item.active, [item])
    } catch (found) {
      if (found instanceof SlidegateError) {
        return new SlidegateError(found.code, `requests[${i}]: ${found.message}`, found.value)
      }
    }
  }
  return error
}
