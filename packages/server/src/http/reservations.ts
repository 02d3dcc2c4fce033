// POST /v1/reserve, /v1/settle and /v1/refund, and their tokens.

import type { AnyKey, Settlement } from 'slidegate'
import { type Static, Type } from '../json-schema.ts'
import type { Caller } from '../service/gatekeeper.ts'
import type { ActiveLimiter, Service } from '../service/service.ts'
import { ServiceError } from '../service/service-error.ts'
import type { App, Context } from './context.ts'
import { decided } from './decisions.ts'
import { checkPlan, limiterFor, mayChoose } from './requests.ts'
import { closed, deniedWithoutStore, Key, LimiterName, Plan, shared } from './schemas.ts'

const Units = Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER })
const Token = Type.String({ minLength: 1, description: 'The token from the response to the charge.' })

const ReserveSchema = closed(
  {
    limiter: LimiterName,
    key: Key,
    estimate: Type.Integer({
      ...Units,
      description: 'Units to charge until the reservation is settled.',
    }),
    plan: Type.Optional(Plan),
  },
  { examples: [{ limiter: 'api', key: 'ann', estimate: 5 }] },
)

const SettleSchema = closed(
  {
    limiter: LimiterName,
    token: Token,
    actual: Type.Integer({
      minimum: 0,
      maximum: Number.MAX_SAFE_INTEGER,
      description:
        'The actual cost. The difference from the estimate is refunded or charged. This charge may exceed the limits.',
    }),
  },
  { examples: [{ limiter: 'api', token: 'WzEsImFwaSIs...~5~', actual: 3 }] },
)

const CancelSchema = closed(
  { limiter: LimiterName, token: Token },
  { examples: [{ limiter: 'api', token: 'WzEsImFwaSIs...~5~' }] },
)

const RefundSchema = closed(
  {
    limiter: LimiterName,
    token: Token,
    units: Type.Optional(Type.Integer({ ...Units, description: 'Units to return. Default: all.' })),
  },
  { examples: [{ limiter: 'api', token: 'WzEsImFwaSIs...~5~', units: 2 }] },
)

const Returned = Type.Integer({
  minimum: 0,
  description:
    'Units returned: the lowest number across all enforced limits. It is lower than requested if a limit no longer counts some of the units.',
})
const SettlementSchema = closed(
  {
    returned: Returned,
    added: Type.Integer({ minimum: 0, description: 'Units charged in addition to the estimate.' }),
  },
  { description: 'The reservation is settled.' },
)
const RefundedSchema = closed({ returned: Returned }, { description: 'The units are returned.' })

export function reservationRoutes(app: App, { service }: Context): void {
  const tags = ['reservations']
  const config = { role: 'check' } as const
  app.post(
    '/v1/reserve',
    {
      config,
      schema: {
        summary: 'Charge an estimate',
        description:
          'Charges an estimate, to be settled when the cost is known. An estimate stays charged until it is settled. Not available for limits that store each request: `log: zset`, `log: stream`, `concurrency`, `distinct`.',
        tags,
        body: ReserveSchema,
        response: {
          200: { description: 'Allowed. The estimate is charged.', ...shared('ReservedDecision') },
          429: { description: 'Denied. Nothing is charged.', ...shared('ReservedDecision') },
          503: deniedWithoutStore(shared('ReservedDecision')),
        },
      },
    },
    async ({ body, caller }, reply) => {
      const { limiter, key, estimate, plan } = body as Static<typeof ReserveSchema>
      const active = limiterFor(service, caller, limiter)
      const { decision, token } = await reserve(active, key as AnyKey, estimate, plan)
      return decided(reply, limiter, decision, { token })
    },
  )
  app.post(
    '/v1/settle',
    {
      config,
      schema: {
        summary: 'Settle an estimate',
        description: "Works once, on any instance, within the limiter's `reservationTtl`.",
        tags,
        body: SettleSchema,
        response: { 200: SettlementSchema },
      },
    },
    ({ body, caller }) => {
      const { limiter, token, actual } = body as Static<typeof SettleSchema>
      return settle(service, caller, limiter, claimOf(token), actual)
    },
  )
  app.post(
    '/v1/cancel',
    {
      config,
      schema: {
        summary: 'Cancel an estimate',
        description: 'The same as `/v1/settle` with `actual: 0`.',
        tags,
        body: CancelSchema,
        response: { 200: SettlementSchema },
      },
    },
    ({ body, caller }) => {
      const { limiter, token } = body as Static<typeof CancelSchema>
      return settle(service, caller, limiter, claimOf(token), 0)
    },
  )
  app.post(
    '/v1/refund',
    {
      config,
      schema: {
        summary: 'Refund a charge',
        description: 'Returns units that were consumed with `refundable: true`. Works once, on any instance.',
        tags,
        body: RefundSchema,
        response: { 200: RefundedSchema },
      },
    },
    async ({ body, caller }) => {
      const { limiter, token, units } = body as Static<typeof RefundSchema>
      const claim = claimOf(token)
      const refunded = units ?? claim.units
      if (refunded > claim.units) {
        throw new ServiceError(
          400,
          'invalid_refund',
          `units is ${refunded}; only ${claim.units} were charged`,
        )
      }
      const { returned } = await settle(service, caller, limiter, claim, claim.units - refunded)
      return { returned }
    },
  )
}

/** Charges units. Returns a token to settle the charge, unless it is denied. */
export async function reserve(active: ActiveLimiter, key: AnyKey, units: number, plan: string | undefined) {
  checkPlan(active, plan)
  const { decision, token } = await active.limiter.reserve(key, units, { request: { plan } })
  return { decision, token: decision.allowed ? tokenOf({ token, units, plan }) : undefined }
}

/** Settles a claim. The limiter checks that it issued the token. */
async function settle(
  service: Service,
  caller: Caller,
  limiter: string,
  { token, plan }: Claim,
  actual: number,
): Promise<Settlement> {
  const active = limiterFor(service, caller, limiter)
  // The plan is omitted if requests can no longer choose it, so that settling still works.
  const request = { plan: mayChoose(active, plan) ? plan : undefined }
  return active.limiter.settle(token, actual, { request })
}

/** The contents of a token: the library's token, the charged units and the plan. Settling needs all of them. */
export interface Claim {
  readonly token: string
  readonly units: number
  readonly plan: string | undefined
}

/** Separates the parts of a token. Occurs in no library token, plan or number, and needs no escaping in a URL. */
const MARK = '~'

export function tokenOf({ token, units, plan = '' }: Claim): string {
  return [token, units, plan].join(MARK)
}

/**
 * Parses a token. Its units and plan may be forged, which is harmless.
 *
 * A plan only applies if requests may choose it. With forged units, `/v1/refund` can do no more than `/v1/settle`.
 *
 * @throws {ServiceError} `invalid_token`
 */
export function claimOf(text: string): Claim {
  const [token, units, plan, ...others] = text.split(MARK, 4)
  if (!/^\d{1,16}$/.test(units ?? '') || plan === undefined || others.length > 0) {
    throw new ServiceError(
      400,
      'invalid_token',
      'the token is malformed; pass the token or refundToken from a response',
    )
  }
  return { token: token!, units: Number(units), plan: plan === '' ? undefined : plan }
}
