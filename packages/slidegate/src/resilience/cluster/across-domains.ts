import { isCounted } from '../../decision.ts'
import { SlidegateError } from '../../errors.ts'
import { applyEach } from '../../stores/call.ts'
import type {
  Call,
  ConsumeOp,
  ConsumeOutcome,
  ExplainOp,
  ExplainOutcome,
  HoldOp,
  HoldOutcome,
  ListOp,
  ListOutcome,
  Op,
  Outcome,
  OverrideOp,
  OverrideOutcome,
  Part,
  PeekOp,
  RefundOp,
  RefundOutcome,
  SettleOp,
  SettleOutcome,
  Store,
} from '../../stores/store.ts'
import { LateCharges } from '../late-charges.ts'
import { joinedOutcome } from './joined-outcome.ts'
import { consumeAcross } from './joined-request.ts'
import { askAll, byPart, joined, limitsIn, logsIn, type Share } from './shares.ts'

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

  #domainOfPart(part: Part): number {
    this.#probe.parts[0] = part
    return this.#domainOf(this.#probe)
  }

  #split(op: Op, call: Call): void {
    switch (op.type) {
      case 'consume':
        if (mayRepeat(op)) call.reject(notAcross(op))
        else consumeAcross(op, this.#sharesOf(op), call, this.#store, this.#late)
        return
      case 'peek':
      case 'explain':
        if (mayRepeat(op)) call.reject(notAcross(op))
        else this.#look(op, call)
        return
      case 'refund':
        this.#refund(op, call)
        return
      case 'settle':
        this.#settle(op, call)
        return
      case 'extend':
      case 'release':
        this.#hold(op, call)
        return
      case 'list':
        this.#list(op, call)
        return
      case 'override':
        this.#askAll(this.#overridesOf(op), call, (told) => {
          return { existed: told.some(({ outcome }) => (outcome as OverrideOutcome).existed) }
        })
        return
      default:
        this.#askAll(this.#sharesOf(op), call, () => undefined)
    }
  }

  /** The parts of each domain, as an op of their own. */
  #sharesOf<Asked extends Op>(op: Asked): Share<Asked>[] {
    const places = new Map<number, number[]>()
    op.parts.forEach((part, place) => {
      const domain = this.#domainOfPart(part)
      const known = places.get(domain)
      if (known === undefined) places.set(domain, [place])
      else known.push(place)
    })
    return Array.from(places.values(), (places) => {
      const parts = places.map((place) => op.parts[place]!)
      return { op: { ...op, parts }, places }
    })
  }

  #overridesOf(op: OverrideOp): Share<OverrideOp>[] {
    const { given } = op
    const shares = this.#sharesOf(op)
    if (given === undefined) return shares
    return shares.map(({ op, places }) => ({
      op: { ...op, given: places.map((place) => given[place]!) },
      places,
    }))
  }

  /** One that fails fails the call, when all are settled. */
  #askAll<Asked extends Op>(
    shares: readonly Share<Asked>[],
    call: Call,
    outcomeOf: (told: readonly { share: Share<Asked>; outcome: Outcome }[]) => Outcome,
  ): void {
    askAll(this.#store, shares, call, (told, errors) => {
      if (errors.length > 0) call.reject(errors[0])
      else call.resolve([outcomeOf(told)], 0)
    })
  }

  #look(op: PeekOp | ExplainOp, call: Call): void {
    this.#askAll(this.#sharesOf<PeekOp | ExplainOp>(op), call, (told) => {
      const outcome = joinedOutcome(
        op,
        told.map(({ share, outcome }) => ({ places: share.places, outcome: outcome as ConsumeOutcome })),
      )
      if (op.type === 'peek') return outcome
      const rowsOf = <T>(row: (outcome: ExplainOutcome) => readonly T[]) =>
        told.map(({ share, outcome }) => [share.places, row(outcome as ExplainOutcome)] as const)
      return {
        ...outcome,
        frees: joined(
          op.parts,
          rowsOf(({ frees }) => frees),
          limitsIn,
          [],
        ),
        bans: joined(
          op.parts,
          rowsOf(({ bans }) => bans),
          () => 1,
          undefined,
        ),
        ...((op as ExplainOp).charges !== undefined && {
          charges: joined(
            op.parts,
            rowsOf(({ charges = [] }) => charges),
            limitsIn,
            undefined,
          ),
        }),
      }
    })
  }

  #refund(op: RefundOp, call: Call): void {
    const { debits, ...whole } = op
    const shares = this.#sharesOf(whole).flatMap((share): Share<RefundOp>[] => {
      const place = share.places[0]!
      const source = debits === undefined ? op.source : debits[place]!.source
      const charged = chargedIn(op, share)
      if ((source !== undefined && !isCounted(source)) || !charged.includes(true)) return []
      const { source: _, ...asked } = share.op
      const atMs = debits?.[place]?.atMs ?? op.atMs
      const refund = { ...asked, charged, atMs }
      return [{ ...share, op: source === 'fallback' ? { ...refund, source } : refund }]
    })
    const outcomeOf = (rows: readonly (readonly [readonly number[], readonly number[]])[]) => {
      return { returned: joined(op.parts, rows, logsIn, 0) }
    }
    if (shares.length === 0) {
      call.resolve([outcomeOf([])], 0)
      return
    }
    this.#askAll(shares, call, (told) => {
      return outcomeOf(
        told.map(({ share, outcome }) => [share.places, (outcome as RefundOutcome).returned] as const),
      )
    })
  }

  #settle(op: SettleOp, call: Call): void {
    const shares = this.#sharesOf(op).map((share) => {
      const instants = share.places.map((place) => op.instants[place]!)
      return { ...share, op: { ...share.op, charged: chargedIn(op, share), instants } }
    })
    this.#askAll(shares, call, (told): SettleOutcome => {
      const settled = told.every(({ outcome }) => (outcome as SettleOutcome).settled)
      const rows = told.map(({ share, outcome }) => {
        return [share.places, (outcome as SettleOutcome).returned] as const
      })
      return { settled, returned: settled ? joined(op.parts, rows, logsIn, 0) : [] }
    })
  }

  #hold(op: HoldOp, call: Call): void {
    const { debits, ...whole } = op
    const shares = this.#sharesOf(whole).map((share): Share<HoldOp> => {
      if (debits === undefined) return share
      const { source: _, ...asked } = share.op
      const isFallback = debits[share.places[0]!]!.source === 'fallback'
      return { ...share, op: isFallback ? { ...asked, source: 'fallback' } : asked }
    })
    this.#askAll(shares, call, (told): HoldOutcome => {
      return { held: told.every(({ outcome }) => (outcome as HoldOutcome).held) }
    })
  }

  #list(op: ListOp, call: Call): void {
    this.#askAll(this.#sharesOf(op), call, (told): ListOutcome => {
      const rows = told.map(({ share, outcome }) => [share.places, (outcome as ListOutcome).lists] as const)
      return { lists: joined(op.parts, rows, logsIn, []) }
    })
  }
}

function mayRepeat(op: ConsumeOp | PeekOp | ExplainOp): boolean {
  return op.mayRepeat === true && op.requestId !== undefined
}

function notAcross({ requestId, parts }: ConsumeOp | PeekOp | ExplainOp): SlidegateError {
  return new SlidegateError(
    'invalid_request_id',
    `a request for ${parts.length} keys in different parts of the store cannot be repeated by its id; leave requestId out`,
    requestId,
  )
}

/** Of the logs of all parts, what is said of those of a share. */
function chargedIn({ parts, charged }: RefundOp | SettleOp, { places }: Share): readonly boolean[] {
  const cells = byPart(parts, [[parts.map((_, place) => place), charged]], logsIn)
  return places.flatMap((place) => cells[place]!)
}
