import type { LimitSet } from '../../src/limits/limit-set.ts'
import type { ConsumeOutcome, Debit } from '../../src/stores/store.ts'
import { type Family, FEATURES, type Feature, Random, RandomSets, type SetJson } from './random-sets.ts'

/** An op as JSON, as in stores/remote/ops.ts. A part is the place of its set in a list, and a key. */
export interface OpJson {
  readonly type: string
  readonly parts: readonly (readonly [place: number, key: string])[]
  readonly [field: string]: unknown
}

/** Ops that are sent at once, each some milliseconds after the one before. */
export type Batch = readonly (readonly [afterMs: number, op: OpJson])[]

/** A request that was admitted. */
interface Admitted {
  readonly op: OpJson
  readonly atMs: number
  readonly charged: readonly boolean[]
  readonly debits: readonly Debit[] | undefined
}

const FOREVER = 2 ** 52
const KEYS = ['ann', 'bob', 'c:d', '{e}', 'f"g', "h'i\\", '~j', 'k', 'l', 'm']

/** The richest features come more often. */
const OFTEN = [...FEATURES, 'packed', 'deep', 'deep', 'deep', 'zset', 'concurrency', 'kept', 'keyed'] as const

/** Ops whose second answer differs. */
const SEVERAL = ['consume', 'peek', 'charge']

/** Milliseconds between ops that are sent at once, at most. */
const PACES = [1, 1, 3, 10, 40]

interface Options {
  readonly feature?: Feature | undefined
  /** Ops of the history. Default: 50 to 2000. */
  readonly length?: number
  /** Few charges, and no more values than a sketch can separate. */
  readonly isSmall?: boolean
  /** For comparing kinds of stores. Ops that leave in a call of their own come alone, and the clock is not set back far. */
  readonly isOrdered?: boolean
}

/** A random history of ops. The next op depends on the decisions before it. */
export class RandomHistory {
  readonly feature: Feature
  readonly sets: readonly SetJson[]
  readonly startMs: number
  readonly #random: Random
  readonly #families: readonly Family[]
  readonly #setOf = new Map<number, LimitSet>()
  readonly #windowMs: number
  readonly #limit: number
  readonly #keys: readonly string[]
  readonly #isValued: boolean
  readonly #isBackward: boolean
  readonly #isOrdered: boolean
  readonly #ids: number
  readonly #charges: number | undefined
  readonly #epilogue: Batch[] = []
  #left: number
  #current = 0
  #nowMs: number
  #named = 0
  /** Pauses after which something ends, as the last outcome says. */
  #waits: readonly number[] = []
  #pace: number
  #admitted: Admitted[] = []
  #reserved: Admitted[] = []

  constructor(
    seed: number,
    read: (set: SetJson) => LimitSet,
    { feature, length, isSmall, isOrdered }: Options = {},
  ) {
    const random = new Random(seed)
    this.#random = random
    this.feature = feature ?? random.pick(OFTEN)
    const sets = new RandomSets(random, this.feature, read)
    this.#families = sets.families()
    this.sets = sets.json
    this.#windowMs = sets.windowMs
    this.#limit = sets.limit
    for (const { sets, places, reserving } of this.#families) {
      for (const [i, place] of places.entries()) this.#setOf.set(place, sets[i]!)
      for (const place of reserving) this.#setOf.set(place, read(this.sets[place]!))
    }
    this.#isValued = this.feature === 'distinct' || this.feature === 'sketch'
    const isDeep = this.feature === 'deep'
    this.#keys = KEYS.slice(0, isDeep ? random.int(1, 2) : random.int(3, isSmall ? 4 : 10))
    this.#pace = random.pick(PACES)
    this.#isBackward = random.chance(0.5)
    this.#ids = this.feature === 'sketch' && !isSmall ? random.int(5, 5000) : random.int(3, 60)
    this.#isOrdered = isOrdered === true
    this.#charges = isSmall ? 12 : undefined
    const usual = random.chance(0.1) ? random.int(300, 2000) : random.int(50, 250)
    this.#left = length ?? (isDeep ? random.int(300, random.pick([800, 800, 800, 8000])) : usual)
    this.startMs = random.pick([1e10, 1e12, 2e12]) + random.int(0, 1e9)
    this.#nowMs = this.startMs
  }

  /** The next ops; none if it is over. */
  next(): Batch | undefined {
    const batch = this.#left <= 0 ? this.#last() : (this.#atAnEnd() ?? this.#batch())
    for (const [afterMs] of batch ?? []) this.#nowMs += afterMs
    return batch
  }

  /** The refund of a charge as it stops counting. */
  #atAnEnd(): Batch | undefined {
    const { chance, pick, int } = this.#draws()
    if (this.#admitted.length === 0 || !chance(0.03)) return undefined
    const admitted = pick(this.#admitted.slice(-10))
    const { windowMs, precisionMs } = pick(this.#setOf.get(admitted.op.parts[0]![0])!.limits)
    const stampMs = admitted.atMs - (admitted.atMs % precisionMs)
    const pauseMs = stampMs + windowMs + precisionMs - 1 + int(-1, 0) - this.#nowMs
    if (pauseMs < 0) return undefined
    this.#left--
    return [[pauseMs, this.#refund(admitted)]]
  }

  #batch(): Batch {
    const { int, chance, pick } = this.#draws()
    if (chance(0.06)) this.#current = int(0, 3)
    const isDeep = this.feature === 'deep'
    const size = this.#random.weighted([
      [isDeep ? 1 : 10, 1],
      [6, int(2, 8)],
      [4, int(9, 40)],
      [isDeep ? 6 : 1, int(41, 80)],
    ])
    // Redis may decide requests for several keys in another order than they were sent in.
    const isLone = this.#isOrdered && this.#families.length > 1
    const most = isLone ? 1 : this.#charges === undefined || isDeep ? size : 8
    const [same, other] = this.#random.pick([
      [0, 0],
      [0.8, 0.1],
      [0.1, 0.8],
      [0.4, 0.4],
    ] as const)
    const isSpread = isDeep || chance(0.3)
    if (chance(0.15)) this.#pace = pick(PACES)
    const batch: [number, OpJson][] = []
    for (let i = 0; i < Math.min(size, most); i++) {
      const last = batch.at(-1)?.[1]
      const isLike = last !== undefined && (SEVERAL.includes(last.type) || chance(0.15))
      const draw = this.#random.next()
      const op =
        isLike && draw < same
          ? this.#again(last)
          : isLike && draw < same + other
            ? this.#elsewhere(last)
            : this.#op()
      const isAlone = this.#isOrdered && !SEVERAL.includes(op.type)
      if (isAlone && i > 0) break
      batch.push([i === 0 ? this.#pauseMs() : isSpread ? int(0, this.#pace) : 0, op])
      if (isAlone) break
    }
    this.#left -= batch.length
    return batch
  }

  /** Looks at each key at the end, and later. */
  #last(): Batch | undefined {
    if (this.#epilogue.length === 0 && this.#left !== Number.NEGATIVE_INFINITY) {
      this.#left = Number.NEGATIVE_INFINITY
      const pauses = [
        0,
        this.#windowMs,
        ...(this.#charges === undefined ? [Math.ceil(this.#windowMs / 3), 3 * this.#windowMs] : []),
      ]
      for (const pauseMs of pauses) {
        const looks = this.#families.flatMap(({ places }) =>
          this.#keys.flatMap((key) => this.#looks([[this.#random.pick(places), key]])),
        )
        const steps = looks.map((op, i) => [i === 0 ? pauseMs : 0, op] as const)
        this.#epilogue.push(...(this.#isOrdered ? steps.map((step) => [step]) : [steps]))
      }
    }
    return this.#epilogue.shift()
  }

  #looks(parts: OpJson['parts']): readonly OpJson[] {
    const explain = { type: 'explain', parts, cost: 1, count: 1, charges: this.#mostCharges(parts) }
    const peek = { type: 'peek', parts, cost: this.#cost(parts), count: 1, ...this.#asked(parts) }
    const list = this.#isKept(parts) ? [{ type: 'list', parts }] : []
    return [explain, ...list, ...(this.#charges === undefined ? [peek] : [])]
  }

  /** Remembers what was decided. An outcome that isn't an object is an error. */
  learn(batch: Batch, outcomes: readonly unknown[]): void {
    batch.forEach(([, op], i) => {
      const outcome = outcomes[i] as ConsumeOutcome | undefined
      if (outcome?.limits !== undefined)
        this.#waits = outcome.limits.filter((ms, i) => i % 3 > 0 && ms > 0 && ms < 1e9)
      if (op.type !== 'consume' || !(Number(outcome?.admitted) > 0)) return
      const { atMs, debits, limits } = outcome!
      let first = 0
      const charged = op.parts.flatMap(([place]) => {
        const set = this.#setOf.get(place)!
        const hasRoom = (limit: number) =>
          !set.limits[limit]!.shadow ||
          limits[3 * (first + limit)]! + (op.cost as number) <= set.limits[limit]!.limit
        const each = set.logs.map(({ role, serves }) => role === 'count' && serves.every(hasRoom))
        first += set.limits.length
        return each
      })
      const list = op.reservation === undefined ? this.#admitted : this.#reserved
      list.push({ op, atMs, charged, debits })
      if (list.length > 200) list.splice(0, 100)
    })
  }

  #op(): OpJson {
    const { chance, pick } = this.#draws()
    const isKept = this.#isKept(this.#parts())
    const canHold = this.#families.some(({ sets }) => sets.some(({ keeps }) => keeps.has('holder')))
    const family = pick(this.#families)
    const can = (isPossible: boolean, weight: number) => (isPossible ? weight : 0)
    const canReserve = this.#families.every(({ reserving }) => reserving.length > 0)
    const isOverridable = this.sets[0]!.isOverridable === true
    // Short histories need more of what few ops are.
    const seldom = this.#charges === undefined ? 1 : 2
    const type = this.#random.weighted([
      [this.#charges === undefined ? 60 : 20, 'consume'],
      [5, 'peek'],
      [3, 'explain'],
      [4, 'charge'],
      [can(this.#admitted.length > 0, 8), 'refund'],
      [can(canHold, 16), chance(0.5) ? 'extend' : 'release'],
      [can(isKept, 2) + 0.3, 'list'],
      [this.feature === 'deep' ? 0.02 : 0.5, 'reset'],
      [can(canReserve, 14 * seldom), 'reserve'],
      [can(this.#reserved.length > 0, 12 * seldom), 'settle'],
      [can(isOverridable || family.bare !== undefined, 4 * seldom), 'override'],
      [can(isOverridable, seldom), 'overrides'],
    ])
    switch (type) {
      case 'consume':
        return this.#consume(this.#parts())
      case 'reserve': {
        const parts = this.#parts(true)
        const cost = this.#cost(parts)
        const reservation = `r${this.#named++}.${cost}`
        return { type: 'consume', parts, cost, count: 1, leaseMs: 0, reservation }
      }
      case 'peek': {
        const parts = this.#parts()
        return { type, parts, cost: this.#cost(parts), count: 1, ...this.#asked(parts) }
      }
      case 'explain': {
        const parts = this.#someParts()
        return {
          type,
          parts,
          cost: this.#cost(parts),
          count: 1,
          ...(chance(0.5) && { charges: this.#mostCharges(parts) }),
        }
      }
      case 'charge': {
        const parts = this.#parts()
        return { type, parts, units: this.#units(parts), ...this.#names(parts, this.#isOrdered) }
      }
      case 'refund':
        return this.#refund()
      case 'extend':
      case 'release': {
        const parts = this.#parts()
        const known =
          this.#admitted.length > 0 && chance(0.85) ? pick(this.#admitted.slice(-8)).op : undefined
        const requestId = (known?.requestId as string | undefined) ?? this.#id()
        return {
          type,
          parts: known?.parts ?? parts,
          requestId,
          units: (known?.cost as number | undefined) ?? 1,
        }
      }
      case 'settle':
        return this.#settle()
      case 'override':
        return this.#override()
      case 'overrides': {
        const place = family.bare !== undefined && chance(0.5) ? family.bare : family.places[0]!
        return {
          type,
          parts: [[place, '']],
          bucket: this.#random.int(0, 3),
          after: chance(0.9) ? '' : pick(this.#keys),
        }
      }
      default:
        return { type, parts: this.#someParts(type === 'reset') }
    }
  }

  #consume(parts: OpJson['parts']): OpJson {
    const { chance, int } = this.#draws()
    const names = this.#names(parts)
    const count = names.requestId === undefined && chance(0.12) ? int(2, 20) : 1
    const leaseMs = names.requestId === undefined && chance(0.05) ? int(1, 2 * this.#windowMs) : 0
    const cost = this.#cost(parts)
    return {
      type: 'consume',
      parts,
      cost,
      count,
      leaseMs,
      ...(chance(0.04) && { isWaiting: true }),
      ...names,
    }
  }

  #refund(admitted?: Admitted): OpJson {
    const { chance, int, pick } = this.#draws()
    const any = chance(0.5) ? this.#admitted.at(-1)! : pick(this.#admitted)
    const { op, atMs, charged, debits } = admitted ?? any
    const { parts, requestId, mayRepeat } = op
    const cost = op.cost as number
    const isWhole = chance(this.#isKept(parts) ? 0.75 : 0.5)
    const when = chance(0.88) ? atMs : Math.max(0, atMs + int(-this.#windowMs, this.#windowMs))
    const which = chance(0.9)
      ? charged
      : charged.map((is, i) => this.#logsOf(parts)[i]!.role === 'count' && is !== chance(0.5))
    return {
      ...{
        type: 'refund',
        parts,
        units: this.#isValued || isWhole ? cost : int(1, Math.min(cost + 1, 1000)),
      },
      ...{ atMs: when, charged: which, ...(debits && { debits }) },
      ...(requestId !== undefined && { requestId, mayRepeat }),
    }
  }

  #settle(): OpJson {
    const { chance, int } = this.#draws()
    const which = chance(0.6) ? this.#reserved.length - 1 : int(0, this.#reserved.length - 1)
    const { op, atMs, charged, debits } = this.#reserved[which]!
    // Few are settled twice.
    if (chance(0.8)) this.#reserved.splice(which, 1)
    const cost = op.cost as number
    const actual = this.#random.weighted([
      [3, cost],
      [3, 0],
      [6, int(0, Math.min(2 * cost, 2 ** 50))],
    ])
    const reservation = chance(0.95) ? op.reservation : `never.${cost}`
    const instants = op.parts.map((_, i) => debits?.[i]?.atMs ?? atMs)
    return { type: 'settle', parts: op.parts, reservation, units: cost, actual, charged, instants }
  }

  #override(): OpJson {
    const { chance, int, pick } = this.#draws()
    const isOverridable = this.sets[0]!.isOverridable === true
    const isBare = !isOverridable || chance(0.5)
    const parts = this.#someParts().map(([place, key], i) => {
      const bare = this.#families[i]?.bare
      return [isBare && bare !== undefined ? bare : place, key] as const
    })
    if (!isOverridable || chance(0.2)) return { type: 'override', parts, blockMs: 0 }
    const times = [int(1, 3 * this.#windowMs), int(1, this.#windowMs), FOREVER].map((ms) =>
      ms > 3e10 && ms < FOREVER ? 3e10 : ms,
    )
    const rule = this.#random.weighted([
      [2, ''],
      [2, 'exempt'],
      [6, JSON.stringify(this.#numbers())],
    ])
    const given = (this.#isOrdered || chance(0.3)) && {
      given: parts.map(([, key]) =>
        (this.#isOrdered ? key < 'd' : chance(0.5)) ? `as given: ${key}\n"é"` : '',
      ),
    }
    const block = { blockMs: pick([0, ...times]) }
    const ruled = { rule, ruleMs: pick(times) }
    return {
      type: 'override',
      parts,
      ...this.#random.weighted<object>([
        [6, ruled],
        [3, block],
        [2, { ...ruled, ...block }],
      ]),
      ...given,
    }
  }

  /** Numbers of some limits, not all of which fit. */
  #numbers(): object {
    const { chance, int, pick } = this.#draws()
    const limits = pick(this.sets.filter((set) => set.limits.length > 0)).limits
    const units = () => pick([1, int(1, 2 * this.#limit), int(1, 10 * this.#limit), 1e6])
    const numbers = limits.flatMap(({ name, kind, log }) => {
      if (chance(0.4)) return []
      const isPacked = kind === 'slidingWindow' && log === undefined
      const own =
        kind === 'tokenBucket'
          ? { ...(chance(0.7) && { capacity: units() }), ...(chance(0.5) && { refill: units() }) }
          : {
              limit: units(),
              ...(chance(isPacked ? 0.4 : 0.05) && { windowMs: Math.max(10, int(1, 3 * this.#windowMs)) }),
            }
      return [[limits.length === 1 && chance(0.3) ? '' : (name ?? ''), own]]
    })
    return Object.fromEntries(numbers)
  }

  /** Repeats the op. An id made for it is replaced. */
  #again(op: OpJson): OpJson {
    const reservation = op.type === 'consume' &&
      op.reservation !== undefined && { reservation: `r${this.#named++}.${op.cost}` }
    const isCharged = op.type === 'consume' || op.type === 'charge'
    const isOwn = isCharged && op.requestId !== undefined && op.mayRepeat === false && !this.#isValued
    return { ...op, ...reservation, ...(isOwn && { requestId: `u${this.#named++}` }) }
  }

  /** The same for other keys. */
  #elsewhere(op: OpJson): OpJson {
    if (op.type === 'overrides') return op
    const parts = op.parts.map(([place]) => [place, this.#random.pick(this.#keys)] as const)
    const names =
      op.requestId === undefined || op.type === 'extend' || op.type === 'release'
        ? {}
        : this.#names(parts, this.#isOrdered && op.type === 'charge')
    return this.#again({ ...op, parts, ...names })
  }

  #parts(isReserving = false): OpJson['parts'] {
    return this.#families.map((family) => {
      const places = isReserving ? family.reserving : family.places
      return [places[this.#current % places.length]!, this.#random.pick(this.#keys)]
    })
  }

  /** Only some dimensions. */
  #someParts(mayReserve = false): OpJson['parts'] {
    const canReserve = mayReserve && this.#families.every(({ reserving }) => reserving.length > 0)
    const parts = this.#parts(canReserve && this.#random.chance(0.8))
    return parts.slice(0, this.#random.int(1, parts.length))
  }

  #logsOf(parts: OpJson['parts']) {
    return parts.flatMap(([place]) => this.#setOf.get(place)!.logs)
  }

  #isKept(parts: OpJson['parts']): boolean {
    return parts.some(([place]) => this.#setOf.get(place)!.keeps.size > 0)
  }

  #id(): string {
    return `${this.#isValued ? 'v' : 'r'}${this.#random.int(0, this.#ids)}`
  }

  #names(
    parts: OpJson['parts'],
    isNew = false,
  ): { readonly requestId?: string; readonly mayRepeat?: boolean } {
    if (!this.#isKept(parts)) return {}
    if (this.#isValued) return { requestId: this.#id(), mayRepeat: false }
    const isOwn = isNew || this.#random.chance(0.5)
    return { requestId: isOwn ? `u${this.#named++}` : this.#id(), mayRepeat: !isOwn }
  }

  #asked(parts: OpJson['parts']): object {
    if (!this.#isKept(parts)) return {}
    if (this.#isValued) return { requestId: this.#id(), mayRepeat: false }
    return this.#random.chance(0.5) ? { requestId: this.#id(), mayRepeat: true } : {}
  }

  #cost(parts: OpJson['parts']): number {
    const { int } = this.#draws()
    const isKept = this.#isKept(parts)
    if (this.#isValued) return 1
    if (this.feature === 'deep' && this.#random.chance(0.97)) return int(1, this.#pace > 3 ? 3 : 1)
    return this.#random.weighted([
      [50, 1],
      [20, int(1, 4)],
      [12, int(1, this.#limit)],
      [8, Math.max(1, this.#limit + int(-1, 1))],
      [5, int(1, 3 * this.#limit)],
      [1, 2 ** 40],
      [isKept ? 0 : 0.5, this.#random.pick([2 ** 46, 2 ** 46 + 1, Number.MAX_SAFE_INTEGER])],
    ])
  }

  /** A forced charge. */
  #units(parts: OpJson['parts']): number {
    const isHuge = !this.#isKept(parts) && this.feature !== 'deep' && this.#random.chance(0.02)
    if (isHuge) return this.#random.pick([2 ** 40, 2 ** 46, 2 ** 46 + 1, Number.MAX_SAFE_INTEGER])
    const units = this.#cost(parts)
    const most = this.#isKept(parts) ? 300 : 4 * this.#limit
    return units <= most || this.#random.chance(0.02)
      ? units
      : this.#random.int(1, Math.max(1, this.#limit >> 1))
  }

  #pauseMs(): number {
    const { int, chance, pick } = this.#draws()
    const ms = this.#windowMs
    if (this.#waits.length > 0 && chance(this.feature === 'deep' ? 0.02 : 0.15)) {
      return Math.max(0, pick(this.#waits) + int(-1, 1))
    }
    if (this.feature === 'deep')
      return this.#random.weighted([
        [20, int(0, 3)],
        [2, int(0, ms / 20)],
        [0.1, int(0, ms)],
      ])
    const back = this.#isBackward ? 1 : 0
    return this.#random.weighted([
      [45, 0],
      [15, int(1, 3)],
      [20, int(0, ms / 20)],
      [10, int(0, ms / 3)],
      [5, int(0, ms)],
      [2, int(ms, 4 * ms)],
      [2 * back, -int(1, 1000)],
      [2 * back, -pick([999, 1000, 1001])],
      [2 * back, -int(1001, 1001 + Math.min(3 * ms, this.#isOrdered ? 3e5 : 1e9))],
    ])
  }

  #mostCharges(parts: OpJson['parts']): number {
    if (this.#charges !== undefined) return this.#charges
    const limits = parts.reduce((sum, [place]) => sum + (this.sets[place]?.limits.length ?? 0), 0)
    return Math.max(1, Math.min(512, Math.floor(2048 / limits)))
  }

  #draws() {
    const random = this.#random
    return {
      int: (least: number, most: number) => random.int(least, Math.floor(most)),
      chance: (probability: number) => random.chance(probability),
      pick: <T>(list: readonly T[]) => random.pick(list),
    }
  }
}
