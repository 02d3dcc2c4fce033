// THE wrapper for a Cluster: ops whose keys live on several servers.

import { SlidegateError } from '../../errors.ts'
import type { Part } from '../../ops/request.ts'
import type { Op } from '../../ops/table.ts'
import { applyEach } from '../../stores/call.ts'
import type { Call, Store } from '../../stores/store.ts'
import { LateCharges } from '../refunds.ts'
import { consumeAcross } from './all-or-nothing.ts'
import { merged } from './merge.ts'
import { askAll, sharesOf } from './split.ts'

/**
 * Splits ops whose parts live in several domains, such as the slots of a Cluster, which no script reaches together. Each
 * domain is asked for its own parts, all at once, and the answers are merged. It wraps the failure policy, so each domain
 * has its own deadline, breaker and fallback. Ops with all parts in one domain pass unchanged.
 *
 * - **All or nothing.** A request is admitted if all domains admit it. If one denies or fails, the charges of the others
 *   are returned at once, each to the instant of its charge. Until then they count: nothing is admitted beyond a limit,
 *   but somebody else may be denied for the length of a round trip. A return that gets lost isn't reported; its charge
 *   leaves the window in time.
 * - **A denial is free.** Charges that were returned read as if they had never been made: `used` is the value from before,
 *   and there is room. Only the time until a window is empty includes the charge, unless the window was empty before.
 * - **Each domain has a clock.** `atMs` of an outcome is the latest of its domains. `debits` has the instant of each
 *   part and who decided it, which refunds pass back.
 * - A request with keys in several domains can't be repeated by its id: `invalid_request_id`.
 * - A reservation that one domain has taken stays there when another denies: it ages out.
 *
 * @param domainOf where the first part of an op lives: see `Store.domainOf`
 */
export function acrossDomains(store: Store, domainOf: (op: Op) => number): Store {
  return new SplittingStore(store, domainOf)
}

class SplittingStore implements Store {
  readonly #store: Store
  readonly #domainOf: (op: Op) => number
  readonly #late: LateCharges
  /** Asks for the domain of one part; to allocate it each time would take longer than the answer. */
  readonly #probe: { readonly type: 'reset'; readonly parts: Part[] } = { type: 'reset', parts: [] }

  constructor(store: Store, domainOf: (op: Op) => number) {
    this.#store = store
    this.#domainOf = domainOf
    this.#late = new LateCharges(store)
  }

  apply(ops: readonly Op[], call: Call): void {
    if (ops.length === 1) {
      if (this.#isSplit(ops[0]!)) this.#split(ops[0]!, call)
      else this.#store.apply(ops, call)
    } else if (ops.some((op) => this.#isSplit(op))) {
      applyEach(ops, call, (op, each) => this.apply([op], each))
    } else {
      this.#store.apply(ops, call)
    }
  }

  close(): void | Promise<void> {
    return this.#store.close()
  }

  #isSplit({ parts }: Op): boolean {
    if (parts.length === 1) return false
    const domain = this.#domainOfPart(parts[0]!)
    for (let i = 1; i < parts.length; i++) if (this.#domainOfPart(parts[i]!) !== domain) return true
    return false
  }

  readonly #domainOfPart = (part: Part): number => {
    this.#probe.parts[0] = part
    return this.#domainOf(this.#probe)
  }

  #split(op: Op, call: Call): void {
    if ('cost' in op && op.mayRepeat === true && op.requestId !== undefined) {
      call.reject(notAcross(op.parts, op.requestId))
    } else if (op.type === 'consume') {
      consumeAcross(op, sharesOf(op, this.#domainOfPart), call, this.#store, this.#late)
    } else {
      this.#askAll(op, call)
    }
  }

  /** One that fails fails the call, when all are settled. */
  #askAll(op: Op, call: Call): void {
    const shares = sharesOf(op, this.#domainOfPart)
    if (shares.length === 0) {
      call.resolve([merged(op, [])], 0)
      return
    }
    askAll(this.#store, shares, call, (told, errors) => {
      if (errors.length > 0) call.reject(errors[0])
      else {
        const said = told.map(({ share, outcome }) => ({ places: share.places, outcome }))
        call.resolve([merged(op, said)], 0)
      }
    })
  }
}

function notAcross(parts: readonly Part[], requestId: string): SlidegateError {
  return new SlidegateError(
    'invalid_request_id',
    `a request for ${parts.length} keys in different parts of the store cannot be repeated by its id; leave requestId out`,
    requestId,
  )
}
