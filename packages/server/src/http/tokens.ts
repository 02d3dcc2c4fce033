import { ServiceError } from '../service/service-error.ts'

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
