import type { Limit } from '../../src/limits/limit.ts'
import { BanModel, type BanRule } from './models/ban.ts'
import { type Awaited, LineModel, type Ticket } from './models/line.ts'
import type { Request } from './models/log-model.ts'
import { type Beside, firstAfter, Oracle, type Ruled } from './oracle.ts'

/** What a store answers to those who ask for one key; numbers are those of `ConsumeOutcome.limits`. */
export interface LineAnswer {
  readonly source: 'store'
  readonly atMs: number
  readonly admitted: number
  readonly limits: readonly number[]
  readonly waitMs: 0
  readonly isBehind?: true
  readonly blockedMs?: number
  readonly bannedParts?: readonly number[]
}

/** Who waits and does not ask when he might be admitted loses his place after so long. */
const PATIENCE_MS = 500

/** Who waits for a limit to be filled more than once is told so much more for each time, up to the most. */
const FILL_MS = 100
const MOST_FILLS_MS = 1000

const LINE: Beside<LineModel> = { name: '/line', model: () => new LineModel() }

/**
 * A key for which some wait in line: by the order in which they came, and by what is truly used of each limit. Who waits is
 * admitted where there is room for him and all before him who do not sleep though there is room.
 */
export class LineOracle {
  readonly #ruled: readonly Ruled[]
  readonly #ban: Beside<BanModel>
  readonly #oracle = new Oracle()
  /** How often somebody was admitted though others were ahead of him, and how often not. */
  readonly seen = { behind: 0, held: 0 }

  constructor(ruled: readonly Ruled[], ban: BanRule) {
    this.#ruled = ruled
    this.#ban = { name: '/ban', model: () => new BanModel(ban) }
  }

  consume(clockMs: number, cost: number, count: number, ticket: Ticket | undefined): LineAnswer {
    const besides = ticket === undefined ? [this.#ban] : [this.#ban, LINE]
    const nowMs = this.#oracle.settle(this.#ruled, clockMs, besides)
    const { blockedMs } = this.#bans().look(nowMs)
    if (blockedMs > 0) return this.#blocked(nowMs, cost, blockedMs)
    const line = this.#oracle.beside(LINE)
    const ahead = ticket === undefined ? [] : line.ahead(nowMs, ticket)
    const used = this.#ruled.map((each) => this.#oracle.used(each, nowMs))
    const room = this.#ruled.map((ruled, i) => {
      const free = this.#freeOf(ruled, used)
      const awaited = ahead.filter(({ units, untilMs }) => units > free || untilMs <= nowMs + 2 * PATIENCE_MS)
      return Math.floor(Math.max(0, ruled.limit.limit - used[i]! - unitsOf(awaited)) / cost)
    })
    const enforced = room.filter((_, i) => !this.#ruled[i]!.limit.shadow)
    const admitted = Math.min(count, ...enforced)
    const charged = this.#ruled.map(({ limit }, i) =>
      limit.shadow ? Math.min(admitted, room[i]!) : admitted,
    )
    this.#charge(nowMs, charged, cost)
    const limits = this.#ruled.flatMap((each, i) => {
      const wait = charged[i]! === count ? 0 : this.#waitFor(each, nowMs, cost, ahead)
      return [used[i]!, wait, this.#resetOf(each, nowMs)]
    })
    const isBehind = ahead.length > 0
    if (isBehind) this.seen[admitted > 0 ? 'behind' : 'held']++
    const answer = {
      ...({ source: 'store', atMs: nowMs, admitted, limits, waitMs: 0 } as const),
      ...(isBehind && ({ isBehind } as const)),
    }
    if (ticket !== undefined) this.#queue(line, nowMs, cost, admitted, count, ticket, limits)
    else if (admitted < count) {
      const blocks = Array.from({ length: count - admitted }, () => this.#deny(nowMs))
      const blockedMs = Math.max(...blocks)
      return blockedMs > 0 ? { ...answer, blockedMs } : answer
    }
    return answer
  }

  leave(clockMs: number, id: string): void {
    // A clock that was set back forgets them all in any case, when they ask again.
    const line = this.#oracle.beside(LINE)
    const copied = this.#oracle.copy()
    line.remove(copied.settle(this.#ruled, clockMs, [this.#ban, LINE]), id)
  }

  reset(): void {
    this.#oracle.forget('')
  }

  /** All denials of one op bring on one ban at most. */
  #deny(nowMs: number): number {
    const bans = this.#bans()
    const { blockedMs } = bans.look(nowMs)
    return blockedMs > 0 ? blockedMs : bans.denied(nowMs)
  }

  #bans(): BanModel {
    return this.#oracle.beside(this.#ban)
  }

  /** The line makes no difference to it. */
  #blocked(atMs: number, cost: number, blockedMs: number): LineAnswer {
    const limits = this.#ruled.flatMap((each) => [
      this.#oracle.used(each, atMs),
      this.#waitFor(each, atMs, cost, []),
      this.#resetOf(each, atMs),
    ])
    return { source: 'store', atMs, admitted: 0, limits, waitMs: 0, blockedMs, bannedParts: [0] }
  }

  #charge(nowMs: number, requests: readonly number[], cost: number): void {
    const shadows = this.#ruled.filter(({ limit }) => limit.shadow)
    const groups = [this.#ruled.filter(({ limit }) => !limit.shadow), ...shadows.map((each) => [each])]
    for (const group of groups) {
      const units = group.length === 0 ? 0 : cost * requests[this.#ruled.indexOf(group[0]!)]!
      if (units > 0) this.#oracle.charge(group, nowMs, requestOf(units))
    }
  }

  /** What is free of the limit, and of all that share its log. */
  #freeOf({ limit }: Ruled, used: readonly number[]): number {
    const logOf = (each: Limit) => each.kind.logName(each) + (each.shadow ? each.name : '')
    const frees = this.#ruled.map((each, i) =>
      logOf(each.limit) === logOf(limit) ? each.limit.limit - used[i]! : Number.POSITIVE_INFINITY,
    )
    return Math.min(...frees)
  }

  /** Until both have room: it, and those before it. */
  #waitFor(ruled: Ruled, nowMs: number, cost: number, before: readonly Awaited[]): number {
    const ahead = unitsOf(before)
    const { limit } = ruled.limit
    if (cost > limit) return Number.POSITIVE_INFINITY
    const used = (ms: number) => this.#oracle.used(ruled, ms)
    if (used(nowMs) + ahead + cost <= limit) return 0
    const wanted = Math.min(ahead + cost, limit)
    const fills = Math.floor((ahead + cost - 1) / limit)
    // As its log rounds it up.
    const windowMs = ruled.limit.kind.params([ruled.limit]).windows[0]!
    const laterMs = Math.min(MOST_FILLS_MS, fills * Math.min(FILL_MS, windowMs))
    // It is the turn of others.
    if (used(nowMs) + wanted <= limit) return laterMs
    return firstAfter(nowMs, (ms) => used(ms) + wanted <= limit) - nowMs + laterMs
  }

  #resetOf(ruled: Ruled, nowMs: number): number {
    return firstAfter(nowMs, (ms) => this.#oracle.used(ruled, ms) === 0) - nowMs
  }

  /** Who was not admitted stands in his place; who was, or never will be, leaves. */
  #queue(
    line: LineModel,
    nowMs: number,
    cost: number,
    admitted: number,
    count: number,
    { id, sinceMs }: Ticket,
    limits: readonly number[],
  ): void {
    // A shadow limit decides nothing.
    const waits = this.#ruled.map(({ limit }, i) => (limit.shadow ? 0 : limits[3 * i + 1]!))
    const waitMs = Math.max(0, ...waits)
    if (admitted === count || waitMs === Number.POSITIVE_INFINITY) {
      line.remove(nowMs, id)
      return
    }
    const since = admitted > 0 || sinceMs === 0 ? nowMs : Math.min(sinceMs, nowMs)
    line.put(nowMs, { id, sinceMs: since }, cost, nowMs + waitMs + PATIENCE_MS)
  }
}

function unitsOf(tickets: readonly Awaited[]): number {
  return tickets.reduce((sum, { units }) => sum + units, 0)
}

function requestOf(units: number): Request {
  return { units, id: '', value: '' }
}
