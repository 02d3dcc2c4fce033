import type { Decision, Limit, LimitDecision, ListedCharge } from '../../src/index.ts'
import type { KindName } from './declarations.ts'
import type { Entry, LogModel, Request, Stamped } from './models/log-model.ts'

// The oracle keeps the real history of one key and decides by counting. All logs use the same timestamp, all limits are checked,
// and either all are charged or none. Models define how each kind of log counts. Nothing here is clever, so it is easy to trust.

/** A limit, and a factory for its empty log. */
export interface Ruled {
  readonly kind: KindName
  readonly limit: Limit
  readonly model: () => LogModel
  /** The key that owns the log, for requests with several keys. */
  readonly of?: string
  /** The number of earlier limits whose separate logs have the same name. */
  readonly place?: number
  /** Whether it is a shadow limit only while its key is exempt. Then it still uses its usual log. */
  readonly isExempt?: boolean
}

/** State that no limit reads, but that affects the timestamp of operations. */
export interface Timed {
  copy(): Timed
  /** When it was last written, or 0 if it is empty. */
  newest(): number
  /** Handles a clock that was set back: remaining times start again now. */
  restamp(nowMs: number): void
}

export interface Beside<Model extends Timed = Timed> {
  readonly name: string
  readonly model: () => Model
}

/** The explanation of a limit. `frees` has the public format. */
export interface Explained {
  readonly used: number
  /** Charges by timestamp, oldest first, if the log keeps them. */
  readonly charges: readonly ListedCharge[] | undefined
  readonly frees: readonly { readonly afterMs: number; readonly units: number }[]
}

/** Merges charges with the same timestamp. */
function byStamp(charges: readonly Stamped[] | undefined): readonly ListedCharge[] | undefined {
  if (charges === undefined) return undefined
  const stamps = [...new Set(charges.map(({ stampMs }) => stampMs))].sort((a, b) => a - b)
  return stamps.map((atMs) => {
    const same = charges.filter(({ stampMs }) => stampMs === atMs)
    return { atMs, units: same.reduce((sum, { units }) => sum + units, 0) }
  })
}

/** A request that can't be decided, with the error code. */
export class Refused extends Error {
  readonly code: string

  constructor(code: string) {
    super(code)
    this.code = code
  }
}

const MAX_AHEAD_MS = 1000

/** Per decision, the indexes of the limits that weren't charged. */
const uncharged = new WeakMap<Decision, ReadonlySet<number>>()

/** Whether an admitted request was charged to the limit at `place`. */
export function wasCharged(decision: Decision, place: number): boolean {
  return uncharged.get(decision)?.has(place) !== true
}

export class Oracle {
  readonly #logs = new Map<string, LogModel>()
  readonly #besides = new Map<string, Timed>()

  copy(): Oracle {
    const copied = new Oracle()
    for (const [name, log] of this.#logs) copied.#logs.set(name, log.copy())
    for (const [name, log] of this.#besides) copied.#besides.set(name, log.copy())
    return copied
  }

  beside<Model extends Timed>({ name, model }: Beside<Model>): Model {
    const log = this.#besides.get(name) ?? model()
    this.#besides.set(name, log)
    return log as Model
  }

  consume(
    ruled: readonly Ruled[],
    clockMs: number,
    request: Request,
    besides: readonly Beside[] = [],
  ): Decision {
    const nowMs = this.settle(ruled, clockMs, besides)
    const first = this.#repeated(ruled, nowMs, request)
    if (first !== undefined) return this.#repeat(ruled, nowMs, request, first)
    const fits = ruled.map((each) => this.#fits(each, nowMs, request))
    const allowed = ruled.every(({ limit }, i) => limit.shadow || fits[i])
    const isCharged = ruled.map(
      (each, i) => this.#hasRoom(ruled, fits, i) && !this.#knows(each, nowMs, request),
    )
    const charged = ruled.filter((_, i) => isCharged[i])
    if (allowed) this.#charge(charged, nowMs, request)
    const decision = this.#decision(ruled, nowMs, request, fits)
    uncharged.set(decision, new Set([...ruled.keys()].filter((i) => !isCharged[i])))
    return decision
  }

  /** Returns what `consume` would return. Writes go to a copy. */
  peek(
    ruled: readonly Ruled[],
    clockMs: number,
    request: Request,
    besides: readonly Beside[] = [],
  ): Decision {
    const copied = this.copy()
    const nowMs = copied.settle(ruled, clockMs, besides)
    const first = copied.#repeated(ruled, nowMs, request)
    if (first !== undefined) return copied.#repeat(ruled, nowMs, request, first)
    return copied.#unchargedDecision(ruled, nowMs, request)
  }

  /** Returns the decision and the state of each limit. Nothing is written. */
  explain(
    ruled: readonly Ruled[],
    clockMs: number,
    request: Request,
    besides: readonly Beside[] = [],
  ): { decision: Decision; explained: Explained[] } {
    const copied = this.copy()
    const nowMs = copied.settle(ruled, clockMs, besides)
    const decision = copied.#unchargedDecision(ruled, nowMs, request)
    return { decision, explained: ruled.map((each) => copied.#explained(each, nowMs)) }
  }

  charge(ruled: readonly Ruled[], clockMs: number, request: Request, besides: readonly Beside[] = []): void {
    this.#charge(ruled, this.settle(ruled, clockMs, besides), request)
  }

  /** Refunds units to one log. */
  takeBack(ruled: Ruled, nowMs: number, atMs: number, request: Request): number {
    return this.#log(ruled).refund(nowMs, atMs, request)
  }

  /** Refunds a request. `least` is the lowest number of units returned to an enforced log, `most` the highest to any log. */
  refund(
    ruled: readonly Ruled[],
    clockMs: number,
    decision: Decision,
    request: Request,
    besides: readonly Beside[] = [],
  ): { least: number; most: number } {
    const nowMs = this.#instant(ruled, clockMs, besides)
    const charged = ruled.filter((_, i) => wasCharged(decision, i))
    const isReturned = this.#isReturned(ruled, nowMs, decision.atMs, request)
    const returned = new Map<string, number>()
    for (const each of isReturned ? [] : charged) {
      const name = logOf(each)
      if (!returned.has(name)) returned.set(name, this.#log(each).refund(nowMs, decision.atMs, request))
    }
    const enforced = charged.filter((each) => !each.limit.shadow || each.isExempt)
    const counted = enforced.length > 0 ? enforced : ruled
    const least = Math.min(...counted.map((each) => returned.get(logOf(each)) ?? 0))
    return { least, most: Math.max(0, ...returned.values()) }
  }

  /** Renews a holder. Returns whether every enforced log that counts holders still had it. */
  extend(ruled: readonly Ruled[], clockMs: number, id: string): boolean {
    return this.#hold(ruled, clockMs, (log, nowMs) => log.entries!.renew(nowMs, id))
  }

  /** Releases a holder. Returns whether every enforced log that counts holders still had it. */
  release(ruled: readonly Ruled[], clockMs: number, id: string): boolean {
    return this.#hold(ruled, clockMs, (log, nowMs) => log.entries!.remove(nowMs, id))
  }

  /** Lists entries of each limit that keeps them. Nothing is written. */
  list(
    ruled: readonly Ruled[],
    clockMs: number,
  ): { limit: string; name: string; units: number; atMs: number }[] {
    const copied = this.copy()
    const nowMs = copied.settle(ruled, clockMs)
    return ruled.flatMap((each) => {
      const entries = copied.#log(each).entries?.list(nowMs) ?? []
      return entries.map(({ name, units, stampMs }) => ({
        limit: each.limit.name,
        name,
        units,
        atMs: stampMs,
      }))
    })
  }

  reset(ruled: readonly Ruled[], besides: readonly Beside[] = []): void {
    for (const each of ruled) this.#logs.delete(logOf(each))
    for (const { name } of besides) this.#besides.delete(name)
  }

  #log(ruled: Ruled): LogModel {
    const name = logOf(ruled)
    const log = this.#logs.get(name) ?? ruled.model()
    this.#logs.set(name, log)
    return log
  }

  #logsOf(ruled: readonly Ruled[], are: 'request' | 'holder'): LogModel[] {
    const logs = new Set(ruled.map((each) => this.#log(each)))
    return [...logs].filter((log) => log.entries?.are === are)
  }

  /**
   * Returns the operation's timestamp. It is never before the newest charge, unless the clock was set back by more
   * than 1 s.
   */
  #instant(ruled: readonly Ruled[], clockMs: number, besides: readonly Beside[] = []): number {
    const newest = this.#timed(ruled, besides).map((log) => log.newest())
    return Math.max(clockMs, ...newest.filter((stampMs) => stampMs <= clockMs + MAX_AHEAD_MS))
  }

  /** Returns the operation's timestamp. After a clock step back, all charges are moved to now. */
  settle(ruled: readonly Ruled[], clockMs: number, besides: readonly Beside[] = []): number {
    const nowMs = this.#instant(ruled, clockMs, besides)
    for (const log of this.#timed(ruled, besides)) if (log.newest() > nowMs) log.restamp(nowMs)
    return nowMs
  }

  /** Returns everything that affects the timestamp. */
  #timed(ruled: readonly Ruled[], besides: readonly Beside[]): Timed[] {
    for (const name of new Set(ruled.map(logOf))) {
      const sharing = ruled.filter((each) => logOf(each) === name)
      this.#log(sharing[0]!).under?.(sharing.map(({ limit }) => limit))
    }
    return [...ruled.map((each) => this.#log(each)), ...besides.map((each) => this.beside(each))]
  }

  #hold(ruled: readonly Ruled[], clockMs: number, act: (log: LogModel, nowMs: number) => boolean): boolean {
    const nowMs = this.settle(ruled, clockMs)
    const enforced = this.#logsOf(
      ruled.filter(({ limit }) => !limit.shadow),
      'holder',
    )
    const found = this.#logsOf(ruled, 'holder').filter((log) => act(log, nowMs))
    return enforced.every((log) => found.includes(log))
  }

  /** Finds the charge of a repeated request, if a log still holds it. */
  #repeated(ruled: readonly Ruled[], nowMs: number, { id }: Request): Entry | undefined {
    const enforced = ruled.filter(({ limit }) => !limit.shadow)
    const known = [...this.#logsOf(enforced, 'request'), ...this.#logsOf(enforced, 'holder')]
    return known.flatMap((log) => log.entries!.list(nowMs)).find(({ name }) => name === id)
  }

  /** Returns the decision of a repeated request: its first charge, with current limits. */
  #repeat(ruled: readonly Ruled[], nowMs: number, request: Request, { units, stampMs }: Entry): Decision {
    if (request.units > units) throw new Refused('reused_request_id')
    const decision = this.#decision(
      ruled,
      nowMs,
      { ...request, units },
      ruled.map(() => true),
      stampMs,
    )
    uncharged.set(decision, new Set([...ruled.keys()].filter((i) => ruled[i]!.limit.shadow)))
    return decision
  }

  /** Whether another decision of the same chosen id has already been refunded. */
  #isReturned(
    ruled: readonly Ruled[],
    nowMs: number,
    atMs: number,
    { id, units, isChosen }: Request,
  ): boolean {
    if (!isChosen) return false
    const enforced = ruled.filter(({ limit }) => !limit.shadow)
    const requests = this.#logsOf(enforced, 'request')
    const finding = requests.length > 0 ? requests : this.#logsOf(enforced, 'holder')
    return finding.some((log) => {
      const entry = log.entries!.list(nowMs).find(({ name }) => name === id)
      return entry?.units !== units || (requests.length > 0 && entry.stampMs !== atMs)
    })
  }

  /** Whether a shadow limit already has this request. It charges a repeated request once, as an enforced limit would. */
  #knows(ruled: Ruled, atMs: number, { id, isChosen }: Request): boolean {
    const { entries } = this.#log(ruled)
    const finds = entries?.are === 'request' || entries?.are === 'holder'
    return ruled.limit.shadow && isChosen === true && finds && entries.find(atMs, id) !== undefined
  }

  #fits(ruled: Ruled, atMs: number, request: Request): boolean {
    if (this.#knows(ruled, atMs, request)) return true
    const log = this.#log(ruled)
    const need = log.need(atMs, request)
    return need === 0 || this.used(ruled, atMs) + need <= ruled.limit.limit
  }

  /** Whether the limit at `place` has room. For an exempt key, all limits of its log must have room. */
  #hasRoom(ruled: readonly Ruled[], fits: readonly boolean[], place: number): boolean {
    const { isExempt } = ruled[place]!
    if (!isExempt) return fits[place]!
    return ruled.every((each, i) => fits[i] || logOf(each) !== logOf(ruled[place]!))
  }

  /** Returns the units that count. */
  used(ruled: Ruled, atMs: number): number {
    return this.#log(ruled).used(ruled.limit, atMs)
  }

  #explained(ruled: Ruled, nowMs: number): Explained {
    const used = this.used(ruled, nowMs)
    const steps =
      used === 0 ? [] : [1, ...Array.from({ length: 10 }, (_, i) => Math.ceil((used * (i + 1)) / 10))]
    const frees = new Map<number, number>()
    for (const units of steps) {
      const afterMs = firstAfter(nowMs, (ms) => this.used(ruled, ms) <= used - units) - nowMs
      frees.set(afterMs, Math.max(units, frees.get(afterMs) ?? 0))
    }
    return {
      used,
      charges: byStamp(this.#log(ruled).charges?.(ruled.limit, nowMs)),
      frees: Array.from(frees, ([afterMs, units]) => ({ afterMs, units })),
    }
  }

  #charge(ruled: readonly Ruled[], nowMs: number, request: Request): void {
    for (const name of new Set(ruled.map(logOf))) {
      const sharing = ruled.filter((each) => logOf(each) === name)
      this.#log(sharing[0]!).charge(
        sharing.map(({ limit }) => limit),
        nowMs,
        request,
      )
    }
  }

  /** Returns the decision of a request that isn't charged. If it has a value that already counts, that value keeps its unit. */
  #unchargedDecision(ruled: readonly Ruled[], nowMs: number, request: Request): Decision {
    const fits = ruled.map((each) => this.#fits(each, nowMs, request))
    const decision = this.#decision(ruled, nowMs, request, fits)
    const [one] = ruled
    if (one === undefined || this.#log(one).need(nowMs, request) > 0) return decision
    const [verdict] = decision.limits
    const remaining = verdict!.remaining + 1
    const limits = [{ ...verdict!, remaining }]
    return { ...decision, limits, ...(!verdict!.shadow && { remaining }) }
  }

  #decision(
    ruled: readonly Ruled[],
    nowMs: number,
    request: Request,
    fits: readonly boolean[],
    atMs = nowMs,
  ): Decision {
    const verdicts = ruled.map((each, i): LimitDecision => {
      const { name, limit, windowMs, precisionMs, shadow } = each.limit
      const used = (ms: number) => this.used(each, ms)
      // The first moment at which this request alone would be admitted.
      const opens = () =>
        this.#log(each).need(nowMs, request) > limit
          ? Number.POSITIVE_INFINITY
          : this.#opensAfter(each, nowMs, request)
      return {
        name,
        limit,
        windowMs,
        precisionMs,
        shadow,
        allowed: fits[i]!,
        remaining: Math.max(0, limit - used(nowMs)),
        retryAfterMs: fits[i] ? 0 : opens(),
        resetAfterMs: used(nowMs) === 0 ? 0 : firstAfter(nowMs, (ms) => used(ms) === 0) - atMs,
      }
    })
    const allowed = ruled.every(({ limit }, i) => limit.shadow || fits[i])
    const enforced = verdicts.filter((verdict) => !verdict.shadow)
    return {
      allowed,
      cost: request.units,
      remaining: Math.min(...enforced.map((verdict) => verdict.remaining)),
      retryAfterMs: allowed ? 0 : Math.max(0, ...enforced.map((verdict) => verdict.retryAfterMs)),
      resetAfterMs: Math.max(0, ...enforced.map((verdict) => verdict.resetAfterMs)),
      deniedBy: allowed ? [] : enforced.filter((verdict) => !verdict.allowed).map((verdict) => verdict.name),
      limits: verdicts,
      source: 'store',
      atMs,
    }
  }

  #opensAfter(ruled: Ruled, nowMs: number, request: Request): number {
    return firstAfter(nowMs, (ms) => this.#fits(ruled, ms, request)) - nowMs
  }
}

/**
 * Returns the first moment from now on at which this holds.
 * Usage only falls while nothing is charged, so once this holds, it keeps holding.
 */
export function firstAfter(nowMs: number, holds: (ms: number) => boolean): number {
  if (holds(nowMs)) return nowMs
  let before = nowMs
  let step = 1
  while (!holds(before + step)) {
    before += step
    step *= 2
  }
  let after = before + step
  while (after - before > 1) {
    const middle = Math.floor((before + after) / 2)
    if (holds(middle)) after = middle
    else before = middle
  }
  return after
}

/** Returns the name of a limit's log. Limits with equal charges share a log, except for buckets. */
export function logOf({ limit, of = '', place = 0, isExempt }: Ruled): string {
  return `${of}/${limit.kind.logName(limit)}${limit.shadow && !isExempt ? `s${limit.name}` : ''}/${place}`
}
