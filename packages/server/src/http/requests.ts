// Finds the limiter, the options and the key for a request body.

import type { AnyKey, ConsumeOptions } from 'slidegate'
import type { Caller } from '../service/gatekeeper.ts'
import type { ActiveLimiter, Service } from '../service/service.ts'
import { ServiceError } from '../service/service-error.ts'

/** The fields in one request. */
export interface RequestBody {
  readonly limiter: string
  readonly key: AnyKey
  readonly cost?: number
  readonly requestId?: string
  readonly value?: string
  readonly plan?: string
}

/** Returns a limiter that the caller may use. @throws {ServiceError} `unknown_limiter` */
export function limiterFor(service: Service, caller: Caller, name: string): ActiveLimiter {
  caller.mustReach(name)
  return service.get(name)
}

export function mayChoose({ declared }: ActiveLimiter, plan: string | undefined): boolean {
  return plan !== undefined && declared.config.choosePlan === true && declared.plans.has(plan)
}

/** @throws {ServiceError} `plan_not_allowed`, `unknown_plan` */
export function checkPlan({ declared }: ActiveLimiter, plan: string | undefined): void {
  if (plan === undefined) return
  if (declared.config.choosePlan !== true) {
    throw new ServiceError(
      403,
      'plan_not_allowed',
      `requests to ${declared.name} can't choose a plan; set choosePlan: true in its configuration`,
    )
  }
  if (!declared.plans.has(plan)) {
    throw new ServiceError(400, 'unknown_plan', `${declared.name} has no plan ${JSON.stringify(plan)}`)
  }
}

/** Returns the options for `consume`. @throws like `checkPlan` */
export function optionsOf(active: ActiveLimiter, body: RequestBody): ConsumeOptions {
  const { cost, requestId, value, plan } = body
  if (plan === undefined) return { cost, requestId, value } as ConsumeOptions
  checkPlan(active, plan)
  return { cost, requestId, value, request: { plan } } as ConsumeOptions
}

/** Returns the key in a body. @throws {ServiceError} `invalid_key` */
export function keyIn({ key, dimension }: { readonly key: unknown; readonly dimension?: string }): AnyKey {
  if (dimension === undefined) return key as AnyKey
  if (typeof key === 'string') return { [dimension]: key }
  throw new ServiceError(400, 'invalid_key', 'with a dimension, the key must be a string')
}
