// POST /v1/reserve, /v1/settle and /v1/refund, and their tokens.

import type { AnyKey, Settlement } from 'slidegate'
import { type Static, Type } from '../json-schema.ts'
import type { Caller } from '../service/gatekeeper.ts'
import type { ActiveLimiter, Service } from '../service/service.ts'
import { ServiceError } from '../service/service-error.ts'
import type { App, Context } from './context.ts'
import { decided } from './decisions.ts'
import { checkPlan, limiterFor, mayChoose } from './requests.ts'
import { closed, Key, LimiterName, Plan, shared } from './schemas.ts'

const Units = Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER })
const Token = Type.String({ minLength: 1, description: 'As a charge was answered with it.' })

const ReserveSchema = closed(
  {
    limiter: LimiterName,
    key: Key,
    estimate: Type.Integer({
      ...Units,
      description: 'Units that are charged until the reservation is settled.',
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
        'What it turned out to be: what was too much is returned, what is more is charged, beyond the limits if need be.',
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
    units: Type.Optional(Type.Integer({ ...Units, description: 'How many to return. Default: all.' })),
  },
  { examples: [{ limiter: 'api', token: 'WzEsImFwaSIs...~5~', units: 2 }] },
)

const Returned = Type.Integer({
  minimum: 0,
  description:
    'Units returned, the least over the enforced limits: fewer than asked where a log no longer holds them.',
})
const SettlementSchema = closed(
  {
    returned: Returned,
    added: Type.Integer({ minimum: 0, description: 'Units charged beyond the estimate.' }),
  },
  { description: 'It is settled.' },
)
const RefundedSchema = closed({ returned: Returned }, { description: 'It is returned.' })

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
          'Charges an estimate that is settled when the cost is known. What is never settled stays charged. Only where all limits keep sums.',
        tags,
        body: ReserveSchema,
        response: {
          200: { description: 'It is charged.', ...shared('ReservedDecision') },
          429: { description: 'Denied, nothing is charged.', ...shared('ReservedDecision') },
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
        description: 'Once, by any instance, within the reservationTtl of the limiter.',
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
        summary: 'Return an estimate',
        description: 'The same as /v1/settle with 0.',
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
        summary: 'Return units of a charge',
        description:
          'Returns units of a request that was consumed with refundable: true. Once, by any instance.',
        tags,
        body: RefundSchema,
        response: { 200: RefundedSchema },
      },
    },
    async ({ body, caller }) => {
      const { limiter, token, units } = body as Static<typeof RefundSchema>
      const claim = claimOf(token)
      const asked = units ?? claim.units
      if (asked > claim.units) {
        throw new ServiceError(400, 'invalid_refund', `units is ${asked}; only ${claim.units} were charged`)
      }
      const { returned } = await settle(service, caller, limiter, claim, claim.units - asked)
      return { returned }
    },
  )
}

/** Charges units, so that whoever has the token can settle them. There is none where it was denied. */
export async function reserve(active: ActiveLimiter, key: AnyKey, units: number, plan: string | undefined) {
  checkPlan(active, plan)
  const { decision, token } = await active.limiter.reserve(key, units, { request: { plan } })
  return { decision, token: decision.allowed ? tokenOf({ token, units, plan }) : undefined }
}

/** The limiter checks that the token is one of its own. */
async function settle(
  service: Service,
  caller: Caller,
  limiter: string,
  { token, plan }: Claim,
  actual: number,
): Promise<Settlement> {
  const active = limiterFor(service, caller, limiter)
  // One that cannot be chosen any more takes nothing from him who has been charged by it.
  const request = { plan: mayChoose(active, plan) ? plan : undefined }
  return active.limiter.settle(token, actual, { request })
}

/** A reservation of the library, and what is needed to settle it: the units that were charged, and by which plan. */
export interface Claim {
  readonly token: string
  readonly units: number
  readonly plan: string | undefined
}

/** Stands in no token of the library, in no plan and in no number; and needs no escape in a URL. */
const MARK = '~'

export function tokenOf({ token, units, plan = '' }: Claim): string {
  return [token, units, plan].join(MARK)
}

/**
 * Of the units and the plan nothing is believed: a plan counts where a request may choose it, and with other units a caller
 * does what he may do by settling.
 *
 * @throws {ServiceError} `invalid_token`
 */
export function claimOf(text: string): Claim {
  const [token, units, plan, ...others] = text.split(MARK, 4)
  if (!/^\d{1,16}$/.test(units ?? '') || plan === undefined || others.length > 0) {
    throw new ServiceError(400, 'invalid_token', 'the token is none that a charge was answered with')
  }
  return { token: token!, units: Number(units), plan: plan === '' ? undefined : plan }
}
