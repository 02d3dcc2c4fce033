import type { LimitSet } from '../../src/limits/limit-set.ts'

// Random limit sets as JSON, in the form of stores/remote/sets.ts.

export class Random {
  #state: number

  constructor(seed: number) {
    this.#state = seed >>> 0
  }

  /** From 0 up to 1, by mulberry32. */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }

  /** An integer, both bounds included. */
  int(least: number, most: number): number {
    return least + Math.floor(this.next() * (most - least + 1))
  }

  chance(probability: number): boolean {
    return this.next() < probability
  }

  pick<T>(list: readonly T[]): T {
    return list[this.int(0, list.length - 1)]!
  }

  /** Picks a value by its weight. */
  weighted<T>(list: readonly (readonly [weight: number, value: T])[]): T {
    let left = this.next() * list.reduce((sum, [weight]) => sum + weight, 0)
    for (const [weight, value] of list) {
      left -= weight
      if (left < 0) return value
    }
    return list.at(-1)![1]
  }
}

type Declaration = Readonly<Record<string, string | number | boolean>>

export interface SetJson {
  readonly limiter: string
  readonly limits: readonly Declaration[]
  readonly additions?: readonly object[]
  readonly isOverridable?: true
}

export const FEATURES = [
  ...['packed', 'coarse', 'deep', 'zset', 'stream', 'bucket', 'counter', 'fixed', 'hit', 'calendar'],
  ...['concurrency', 'distinct', 'sketch', 'mixed', 'kept', 'keyed'],
] as const
export type Feature = (typeof FEATURES)[number]

/** Sets of one dimension. They differ in numbers and share logs. */
export interface Family {
  readonly sets: readonly LimitSet[]
  /** The places of the sets in the list of all. */
  readonly places: readonly number[]
  /** The same sets with a log of reservations, if they can have one. */
  readonly reserving: readonly number[]
  /** A set without limits that has the overrides and bans, if there are any. */
  readonly bare: number | undefined
}

const SUMS = ['packed', 'coarse', 'bucket', 'counter', 'fixed', 'hit', 'calendar'] as const
const KEPT = ['zset', 'stream', 'concurrency'] as const
const LIMITS_OF: Partial<Record<Feature, readonly Feature[]>> = {
  mixed: SUMS,
  keyed: SUMS,
  kept: [...SUMS, ...KEPT, ...KEPT],
}

/** Makes families of sets of a feature, and remembers all of their sets as JSON. */
export class RandomSets {
  readonly json: SetJson[] = []
  /** A window as long as most of the sets have. */
  readonly windowMs: number
  readonly limit: number
  readonly #random: Random
  readonly #read: (set: SetJson) => LimitSet
  readonly #feature: Feature

  constructor(random: Random, feature: Feature, read: (set: SetJson) => LimitSet) {
    this.#random = random
    this.#read = read
    this.#feature = feature
    const isDeep = feature === 'deep'
    this.windowMs = random.pick(
      isDeep ? [100, 300, 1000, 3000, 60_000] : [10, 100, 1000, 10_000, 60_000, 86_400_000],
    )
    this.limit = random.pick(isDeep ? [1000, 5000, 30_000, 100_000] : [1, 2, 3, 5, 8, 12, 20, 60, 300, 1000])
  }

  families(): readonly Family[] {
    const { chance, int } = bound(this.#random)
    const isPlain = chance(this.#feature === 'deep' ? 0.75 : 0.35)
    const bans = !isPlain && chance(0.35) ? [this.#ban()] : []
    const flags = { ...(!isPlain && chance(0.35) && { isOverridable: true as const }) }
    const isKeyed = this.#feature === 'keyed' || (this.#feature === 'kept' && chance(0.3))
    const count = isKeyed ? int(2, 3) : 1
    return Array.from({ length: count }, (_, i) => {
      const limiter = isKeyed ? `mixture/d${i}` : 'mixture'
      const first = this.#limits(isPlain)
      const changed = Array.from({ length: isPlain ? int(0, 1) : int(0, 3) }, () => this.#change(first))
      const all = [first, ...changed].map((limits) => ({
        ...{ limiter, limits, ...flags },
        ...(bans.length > 0 && { additions: bans }),
      }))
      const made = all.flatMap((set) => this.#add(set) ?? [])
      if (made.length === 0) return this.#family(limiter)
      const reservation = { reservations: int(1, 4) * Math.max(100, this.windowMs) }
      const canReserve = !isPlain && chance(0.6) && made.every(({ set }) => set.keeps.size === 0)
      const reserving = made.flatMap(({ place }) => {
        const set = this.json[place]!
        const more = canReserve && this.#add({ ...set, additions: [...(set.additions ?? []), reservation] })
        return more ? more.place : []
      })
      const bare = { limiter, limits: [], ...flags, ...(bans.length > 0 && { additions: bans }) }
      const hasBare = bans.length > 0 || flags.isOverridable === true
      return {
        sets: made.map(({ set }) => set),
        places: made.map(({ place }) => place),
        reserving,
        bare: hasBare ? this.#add(bare)?.place : undefined,
      }
    })
  }

  /** A family in which nothing can fail. */
  #family(limiter: string): Family {
    const { set, place } = this.#add({ limiter, limits: [{ kind: 'fixedWindow', limit: 3, window: 1000 }] })!
    return { sets: [set], places: [place], reserving: [], bare: undefined }
  }

  #add(json: SetJson): { readonly set: LimitSet; readonly place: number } | undefined {
    try {
      const set = this.#read(json)
      return { set, place: this.json.push(json) - 1 }
    } catch {
      // Random numbers do not always fit together.
      return undefined
    }
  }

  #ban(): object {
    const { int, chance } = bound(this.#random)
    const times = Array.from({ length: int(1, 3) }, () => int(10, Math.max(20, this.windowMs / 3)))
    const within = int(10, 3 * Math.max(10, this.windowMs))
    const forget = chance(0.5) && { forgetAfter: int(10, 3 * Math.max(10, this.windowMs)) }
    return { ban: { after: int(1, 6), within, for: times, ...forget } }
  }

  #limits(isPlain: boolean): readonly Declaration[] {
    const { pick, int, chance } = bound(this.#random)
    const kinds = LIMITS_OF[this.#feature] ?? [this.#feature]
    const isAlone = this.#feature === 'distinct' || this.#feature === 'sketch'
    const most = kinds.length > 1 ? int(2, 5) : int(1, 3)
    return Array.from({ length: isAlone ? 1 : most }, (_, i) => ({
      ...this.#declaration(pick(kinds)),
      name: `limit${i}`,
      ...(!isPlain && chance(0.15) && { shadow: true }),
    }))
  }

  #declaration(kind: Feature): Declaration {
    const { pick, int, chance } = bound(this.#random)
    const limit = Math.max(1, Math.round(this.limit * pick([0.5, 1, 1, 2])))
    const window = this.windowMs * pick([1, 1, 1, 2, 5])
    const sliding = { kind: 'slidingWindow', limit, window }
    switch (kind) {
      case 'zset':
      case 'stream':
        return { ...sliding, log: kind }
      case 'coarse':
        return { ...sliding, precision: Math.max(1, Math.floor(this.windowMs / pick([2, 7, 10, 100]))) }
      case 'deep':
        return { ...sliding, ...(this.limit <= 20_000 && { precision: this.windowMs === 1000 ? 10 : 1 }) }
      case 'bucket':
        return { kind: 'tokenBucket', capacity: limit, refill: int(1, 2 * limit), interval: this.windowMs }
      case 'counter':
        return { kind: 'slidingCounter', limit, window }
      case 'fixed':
        return { kind: 'fixedWindow', limit, window }
      case 'hit':
        return { kind: 'fixedWindow', limit, window, align: 'first-hit' }
      case 'calendar': {
        const timeZone = pick(['UTC', 'America/Sao_Paulo', 'Europe/Berlin', 'Asia/Kathmandu'])
        return { kind: 'calendarWindow', limit, unit: pick(['hour', 'day', 'week', 'month']), timeZone }
      }
      case 'concurrency':
        return { kind: 'concurrency', limit, ttl: window }
      case 'distinct':
        return { kind: 'distinct', limit, window }
      case 'sketch':
        return { kind: 'distinct', limit, window, approximate: true }
      default:
        return {
          ...sliding,
          precision: 1,
          ...(chance(0.05) && { limit: 2 ** 40, precision: Math.min(window, 86_400) }),
        }
    }
  }

  /** Changes numbers, or adds or drops a limit. */
  #change(limits: readonly Declaration[]): readonly Declaration[] {
    const { pick, chance } = bound(this.#random)
    const isPacked = ({ kind, log }: Declaration) => kind === 'slidingWindow' && log === undefined
    const changed = limits.map((each) => {
      const scaled = (field: string, scales: readonly number[]) =>
        field in each && { [field]: Math.max(1, Math.round((each[field] as number) * pick(scales))) }
      return {
        ...each,
        ...scaled('limit', [0.3, 0.5, 1, 1, 2, 4]),
        ...scaled('capacity', [0.3, 1, 1, 3]),
        ...scaled('refill', [0.3, 1, 1, 3]),
        ...(isPacked(each) && scaled('window', [1, 1, 2, 4])),
        ...(chance(0.08) && { shadow: each.shadow !== true }),
      }
    })
    if (limits.length > 1 && chance(0.2)) return changed.slice(1)
    const isAlone = this.#feature === 'distinct' || this.#feature === 'sketch'
    return chance(0.2) && !isAlone ? [...changed, { ...changed[0]!, name: 'another' }] : changed
  }
}

function bound(random: Random) {
  return {
    int: (least: number, most: number) => random.int(least, Math.floor(most)),
    chance: random.chance.bind(random),
    pick: random.pick.bind(random) as Random['pick'],
  }
}
