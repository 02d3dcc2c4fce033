// The fallback: answers requests without the store, but applies the overrides that the store returned earlier.

import type { FailureReports } from '../events.ts'
import type { Limit } from '../limits/limit.ts'
import type { LimitSet } from '../limits/limit-set.ts'
import { FOREVER, type InForce } from '../limits/override.ts'
import type { ConsumeOp, PeekOp } from '../ops/all.ts'
import { setUsed, setWait, usedOf, waitOf } from '../ops/numbers.ts'
import { banOf, type ConsumeOutcome, type Part, partsInForce } from '../ops/request.ts'
import type { Op, Outcome } from '../ops/table.ts'
import { type MemoryStore, memoryStore } from '../stores/memory/memory.ts'
import { limitsOf, zerosFor } from '../stores/outcome.ts'
import type { Call, FailureSettings, OnStoreError } from '../stores/store.ts'
import { KeyRing } from './by-key.ts'

type Request = ConsumeOp | PeekOp
type Answers = readonly Outcome[]

/** The minimum wait in a denial, so that callers don't retry in a tight loop. */
const MIN_WAIT_MS = 100

export class Fallback {
  readonly #policy: OnStoreError
  readonly #counts: FailureReports['counts']
  readonly #local: LocalShare
  readonly #overrides: SeenOverrides | undefined

  /** @param overrides the overrides that the store returned; they still apply while it is down */
  constructor(settings: FailureSettings, counts: FailureReports['counts'], overrides?: SeenOverrides) {
    this.#policy = settings.onStoreError
    this.#counts = counts
    this.#overrides = overrides
    this.#local = new LocalShare(settings.instances)
  }

  /** Answers ops, or returns `undefined` if they must fail. With `isOverload`, no policy admits requests. */
  answer(ops: readonly Op[], nowMs: number, pauseMs: number, isOverload: boolean): Answers | undefined {
    if (this.#policy === 'throw') return undefined
    const policy = isOverload ? 'deny' : this.#policy
    const answers: ConsumeOutcome[] = []
    for (const op of ops) {
      if (op.type === 'charge' && this.#policy === 'local') this.#local.charge(op)
      if (op.type !== 'consume' && op.type !== 'peek') return undefined
      answers.push(this.#decide(op, policy, nowMs, Math.max(MIN_WAIT_MS, pauseMs)))
    }
    for (const { source } of answers) this.#counts.withoutStore[source as 'fallback']++
    return answers
  }

  /** Answers ops about this fallback's decisions. Returns false if the op must go to the store, as resets always do. */
  settles(op: Op, call: Call): boolean {
    if ('source' in op && op.source === 'fallback') {
      call.resolve([this.#local.apply(op)], 0)
      return true
    }
    if (op.type === 'reset' && this.#local.isInUse) this.#local.apply(op)
    return false
  }

  #decide(op: Request, policy: OnStoreError, nowMs: number, pauseMs: number): ConsumeOutcome {
    const overrides = this.#overrides?.of(op.parts, nowMs)
    const parts = partsInForce(op.parts, overrides)
    const unblocked = parts.map(() => 0)
    const ban = banOf(unblocked, overrides)
    const inForce = ban === undefined ? policy : 'deny'
    const answer =
      inForce === 'local'
        ? this.#local.decide({ ...op, parts }, pauseMs)
        : uncounted(op, inForce === 'allow', pauseMs)
    return overrides === undefined ? answer : { ...answer, overrides, ...(ban && { ban }) }
  }
}

function uncounted({ parts, count }: Request, isAllowed: boolean, pauseMs: number): ConsumeOutcome {
  const numbers = { atMs: Date.now(), limits: zerosFor(parts) }
  return isAllowed
    ? { source: 'failOpen', ...numbers, admitted: count, waitMs: 0 }
    : { source: 'failClosed', ...numbers, admitted: 0, waitMs: pauseMs }
}

const MAX_LOCAL_KEYS = 100_000

/** Decides in this process, without the store's counts. Applies an equal share of each limit, at least 1. */
export class LocalShare {
  readonly #instances: number
  readonly #createStore: () => MemoryStore
  readonly #shares = new WeakMap<LimitSet, LimitSet>()
  #store: MemoryStore | undefined

  constructor(
    instances = 1,
    createStore = (): MemoryStore => memoryStore({ maxKeys: MAX_LOCAL_KEYS, onFull: 'deny' }),
  ) {
    this.#instances = instances
    this.#createStore = createStore
  }

  decide(op: Request, pauseMs: number): ConsumeOutcome {
    const outcome = this.apply(op) as ConsumeOutcome
    // This process has no room for another key, but the store may have some.
    if (outcome.source !== 'store') return { ...outcome, waitMs: pauseMs }
    const limits = outcome.limits.slice()
    const shares = limitsOf(this.#partsOf(op))
    limitsOf(op.parts).forEach(({ limit }, i) => {
      // Adjusts the usage, so that the declared limit appears to have as many units left as the share.
      setUsed(limits, i, usedOf(limits, i) + limit - shares[i]!.limit)
      // The cost exceeds the share, but the store may have room for it.
      if (waitOf(limits, i) === Number.POSITIVE_INFINITY && op.cost <= limit) setWait(limits, i, pauseMs)
    })
    return { ...outcome, source: 'fallback', limits }
  }

  /** Counts units that were already used. Does nothing if the memory store has no room for the key. */
  charge(op: Op): void {
    try {
      this.apply(op)
    } catch {
      // The caller gets the store's error.
    }
  }

  apply(op: Op): Outcome {
    this.#store ??= this.#createStore()
    return this.#store.applySync([{ ...op, parts: this.#partsOf(op) }])[0]
  }

  get isInUse(): boolean {
    return this.#store !== undefined
  }

  #partsOf({ parts }: Op): readonly Part[] {
    return parts.map(({ key, set }) => ({ key, set: this.#shareOf(set) }))
  }

  #shareOf(set: LimitSet): LimitSet {
    const known = this.#shares.get(set)
    if (known !== undefined) return known
    const limits = set.limits.map((limit) => shareOf(limit, this.#instances))
    const logs = set.logs.map((log) =>
      log.role === 'count' ? { ...log, params: log.kind.params(log.serves.map((i) => limits[i]!)) } : log,
    )
    const share = { ...set, limits, logs, isOverridable: false }
    this.#shares.set(set, share)
    return share
  }
}

function shareOf(limit: Limit, instances: number): Limit {
  if (limit.kind.share !== undefined) return limit.kind.share(limit, instances)
  return { ...limit, limit: Math.max(1, Math.floor(limit.limit / instances)) }
}

const MAX_OVERRIDES = 10_000

interface Seen {
  inForce: InForce | undefined
  atMs: number
}

export class SeenOverrides {
  readonly #seen = new KeyRing<Seen>(MAX_OVERRIDES)

  learn({ type, parts }: Op, outcome: Outcome, nowMs: number): void {
    const isRead = outcome !== undefined && 'admitted' in outcome
    if (!isRead && type !== 'override') return
    for (let i = 0; i < parts.length; i++) {
      this.#keep(parts[i]!, isRead ? outcome.overrides?.[i] : undefined, nowMs)
    }
  }

  of(parts: readonly Part[], nowMs: number): ConsumeOutcome['overrides'] {
    const found = parts.map((part) => {
      const seen = this.#seen.get(part)
      return seen?.inForce && after(nowMs - seen.atMs, seen.inForce)
    })
    return found.some((each) => each !== undefined) ? found : undefined
  }

  #keep(part: Part, inForce: InForce | undefined, atMs: number): void {
    const seen = this.#seen.get(part)
    if (seen !== undefined) {
      seen.inForce = inForce
      seen.atMs = atMs
    } else if (inForce !== undefined) {
      this.#seen.add(part, { inForce, atMs })
    }
  }
}

/** Returns what is left of an override after this time. `undefined` if it has ended. */
function after(passedMs: number, { rule, ruleMs, blockedMs }: InForce): InForce | undefined {
  const left = (ms: number) => (ms === FOREVER ? FOREVER : Math.max(0, Math.ceil(ms - passedMs)))
  const ruleLeftMs = left(ruleMs)
  const blockedLeftMs = left(blockedMs)
  if (ruleLeftMs === 0 && blockedLeftMs === 0) return undefined
  return { rule: ruleLeftMs === 0 ? '' : rule, ruleMs: ruleLeftMs, blockedMs: blockedLeftMs }
}
