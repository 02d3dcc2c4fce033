import type { Decision, LimitDecision } from '../../src/index.ts'
import type { Limit } from '../../src/limits/limit.ts'

// What truly happened, as a list, and the promises applied to it by counting. Nothing here is clever: that is
// its only virtue.

interface Event {
  stampMs: number
  units: number
}

/** What is known of the charges that a log keeps: those that a commit's windows have needed. */
interface History {
  events: Event[]
  keepMs: number
}

const MAX_AHEAD_MS = 1000

export class Oracle {
  readonly #histories = new Map<string, History>()

  consume(limits: readonly Limit[], clockMs: number, cost: number): Decision {
    const nowMs = this.#settle(limits, clockMs)
    const before = limits.map((limit) => this.#used(limit, nowMs))
    const fits = limits.map((limit, i) => before[i]! + cost <= limit.limit)
    const allowed = limits.every((limit, i) => limit.shadow || fits[i])
    if (allowed) {
      const charged = limits.filter((limit, i) => !limit.shadow || fits[i])
      for (const name of new Set(charged.map(logOf))) this.#charge(name, charged, nowMs, cost)
    }
    return this.#decision(limits, nowMs, cost, allowed, fits)
  }

  peek(limits: readonly Limit[], clockMs: number, cost: number): Decision {
    const untouched = structuredClone([...this.#histories])
    const nowMs = this.#settle(limits, clockMs)
    const fits = limits.map((limit) => this.#used(limit, nowMs) + cost <= limit.limit)
    const allowed = limits.every((limit, i) => limit.shadow || fits[i])
    const decision = this.#decision(limits, nowMs, cost, allowed, fits)
    this.#histories.clear()
    for (const [name, history] of untouched) this.#histories.set(name, history)
    return decision
  }

  charge(limits: readonly Limit[], clockMs: number, units: number): void {
    const nowMs = this.#settle(limits, clockMs)
    for (const name of new Set(limits.map(logOf))) this.#charge(name, limits, nowMs, units)
  }

  /** The units returned, the least over the enforced logs; and the most over all logs. */
  refund(
    limits: readonly Limit[],
    clockMs: number,
    decision: Decision,
    units: number,
  ): { least: number; most: number } {
    const nowMs = this.#instant(limits, clockMs)
    const returned = new Map<string, number>()
    limits.forEach((limit, i) => {
      if (!decision.limits[i]!.allowed || returned.has(logOf(limit))) return
      returned.set(logOf(limit), this.#refund(limit, nowMs, decision.atMs, units))
    })
    const enforced = limits.filter((limit) => !limit.shadow)
    const counting = enforced.length > 0 ? enforced : limits
    const least = Math.min(...counting.map((limit) => returned.get(logOf(limit)) ?? 0))
    return { least, most: Math.max(0, ...returned.values()) }
  }

  reset(limits: readonly Limit[]): void {
    for (const limit of limits) this.#histories.delete(logOf(limit))
  }

  #history(name: string): History {
    const history = this.#histories.get(name) ?? { events: [], keepMs: 0 }
    this.#histories.set(name, history)
    return history
  }

  /** The instant of the op: never before the newest charge, unless the clock was set back by more than a second. */
  #instant(limits: readonly Limit[], clockMs: number): number {
    const newest = limits.map((limit) => newestOf(this.#history(logOf(limit))))
    return Math.max(clockMs, ...newest.filter((stampMs) => stampMs <= clockMs + MAX_AHEAD_MS))
  }

  /** The same; and after the clock was set back, all that counted is taken to have happened now. */
  #settle(limits: readonly Limit[], clockMs: number): number {
    const nowMs = this.#instant(limits, clockMs)
    for (const limit of limits) {
      const history = this.#history(logOf(limit))
      if (newestOf(history) <= nowMs) continue
      const units = history.events.reduce((sum, event) => sum + event.units, 0)
      history.events = [{ stampMs: stampOf(limit, nowMs), units }]
    }
    return nowMs
  }

  /** When a charge made at this stamp stops counting against the limit. */
  #expiry(limit: Limit, stampMs: number): number {
    if (limit.kind.tag === 'f') return stampMs + limit.windowMs
    // Until the whole of its grain has left the window.
    const needed = limit.windowMs + limit.precisionMs - 1
    return stampMs + Math.min(needed, this.#history(logOf(limit)).keepMs)
  }

  #used(limit: Limit, atMs: number): number {
    const counting = this.#history(logOf(limit)).events.filter(
      ({ stampMs }) => atMs < this.#expiry(limit, stampMs),
    )
    return counting.reduce((sum, { units }) => sum + units, 0)
  }

  #charge(name: string, limits: readonly Limit[], nowMs: number, units: number): void {
    const sharing = limits.filter((limit) => logOf(limit) === name)
    const history = this.#history(name)
    // Judged by what was kept so far, before it is kept for longer.
    history.events = history.events.filter(({ stampMs }) => nowMs < stampMs + history.keepMs)
    if (history.events.length === 0) history.keepMs = 0
    for (const { windowMs, precisionMs, kind } of sharing) {
      const needed = kind.tag === 'f' ? windowMs : windowMs + precisionMs - 1
      history.keepMs = Math.max(history.keepMs, needed)
    }
    history.events.push({ stampMs: stampOf(sharing[0]!, nowMs), units })
  }

  #refund(limit: Limit, nowMs: number, atMs: number, units: number): number {
    const stampMs = stampOf(limit, atMs)
    const history = this.#history(logOf(limit))
    if (nowMs >= stampMs + history.keepMs) return 0
    let left = units
    for (const event of history.events.filter((candidate) => candidate.stampMs === stampMs)) {
      const taken = Math.min(left, event.units)
      event.units -= taken
      left -= taken
    }
    history.events = history.events.filter((event) => event.units > 0)
    return units - left
  }

  #decision(
    limits: readonly Limit[],
    nowMs: number,
    cost: number,
    allowed: boolean,
    fits: readonly boolean[],
  ): Decision {
    const verdicts = limits.map((limit, i): LimitDecision => {
      const { name, windowMs, precisionMs, shadow } = limit
      const expiries = this.#history(logOf(limit)).events.map(({ stampMs }) => this.#expiry(limit, stampMs))
      // Usage falls only where something expires: the first such moment at which the cost fits.
      const moments = [...new Set(expiries)].filter((moment) => moment > nowMs).sort((a, b) => a - b)
      const opens = moments.find((moment) => this.#used(limit, moment) + cost <= limit.limit)
      const wait = opens === undefined ? Number.POSITIVE_INFINITY : opens - nowMs
      return {
        name,
        limit: limit.limit,
        windowMs,
        precisionMs,
        shadow,
        allowed: fits[i]!,
        remaining: Math.max(0, limit.limit - this.#used(limit, nowMs)),
        retryAfterMs: fits[i]! ? 0 : wait,
        resetAfterMs: Math.max(0, ...expiries.map((expiry) => expiry - nowMs)),
      }
    })
    const enforced = verdicts.filter((verdict) => !verdict.shadow)
    return {
      allowed,
      cost,
      remaining: Math.min(...enforced.map((verdict) => verdict.remaining)),
      retryAfterMs: allowed ? 0 : Math.max(0, ...enforced.map((verdict) => verdict.retryAfterMs)),
      resetAfterMs: Math.max(0, ...enforced.map((verdict) => verdict.resetAfterMs)),
      deniedBy: allowed ? [] : enforced.filter((verdict) => !verdict.allowed).map((verdict) => verdict.name),
      limits: verdicts,
      source: 'store',
      atMs: nowMs,
    }
  }
}

function newestOf(history: History): number {
  return Math.max(0, ...history.events.map(({ stampMs }) => stampMs))
}

/** Limits whose charges are always the same share a history. */
function logOf(limit: Limit): string {
  return limit.kind.logName(limit) + (limit.shadow ? limit.name : '')
}

function stampOf(limit: Limit, nowMs: number): number {
  return nowMs - (nowMs % limit.precisionMs)
}
