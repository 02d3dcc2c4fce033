import '../../src/calendar.ts'
import type { Redis } from 'ioredis'
import {
  createLimiter,
  type Decision,
  declarationOf,
  type Limit,
  type Limiter,
  type LimiterOptions,
  limitOf,
  type Override,
  type Reservation,
  type SlidingCount,
  type SlidingCountOptions,
  type Store,
  slidingCount,
} from '../../src/index.ts'
import { limitSet } from '../../src/limits/limit-set.ts'
import { outcomesOf } from '../../src/stores/call.ts'
import { type CommandClient, redisStore } from '../../src/stores/redis/index.ts'
import type { ConsumeOp } from '../../src/stores/store.ts'
import type { ManualClock } from '../../src/testing/index.ts'

export type Json = string | number | boolean | null | readonly Json[] | { readonly [name: string]: Json }

/** What makes a limiter, or a count, as JSON: wherever a limit is asked for stands its declaration. */
export interface Declared {
  readonly options: Json
  readonly is?: 'slidingCount'
  /** Of its store. */
  readonly prefix?: string
  readonly buckets?: number
  /** Whether its client sends a command again whose reply was lost. */
  readonly resends?: true
}

/** A call of a method; or of what the player has of its own. */
export interface Call {
  /** Of which limiter, where there are several. */
  readonly by?: string
  readonly call: string
  /** An argument `$name` is what was answered to the call of this name: a decision, or the token of a reservation. */
  readonly args: readonly Json[]
  readonly as?: string
  /** How often, and how much later each time. Only the last answer is told. */
  readonly times?: number
  readonly everyMs?: number
}

export interface Wait {
  readonly afterMs: number
}

/** Another process goes on, which has to ask the store what this one knows. */
export interface Restart {
  readonly restart: true
}

export type Step = Call | Wait | Restart

/** Limiters on a Redis, that do as they are told. */
export class Player {
  readonly #make: () => Readonly<Record<string, Made>>
  readonly #clock: ManualClock
  #made: Readonly<Record<string, Made>>
  readonly #answers = new Map<string, unknown>()

  constructor(redis: Redis, declared: Readonly<Record<string, Declared>>, clock: ManualClock) {
    const limiters = Object.entries(declared)
    this.#make = () => Object.fromEntries(limiters.map(([name, each]) => [name, make(redis, each, clock)]))
    this.#clock = clock
    this.#made = this.#make()
  }

  /** What an earlier process was told. */
  remember(name: string, told: Json): void {
    this.#answers.set(name, told)
  }

  /** Answers what it was told, as JSON; an error as its code and reason. Of a wait, or a restart, there is nothing to tell. */
  async play(step: Step): Promise<Json | undefined> {
    if ('afterMs' in step) {
      this.#clock.advance(step.afterMs)
      return undefined
    }
    if ('restart' in step) {
      this.close()
      this.#made = this.#make()
      return undefined
    }
    let told: Json = null
    for (let i = 0; i < (step.times ?? 1); i++) {
      if (i > 0) this.#clock.advance(step.everyMs ?? 0)
      told = await this.#call(step)
    }
    return told
  }

  close(): void {
    for (const { limiter } of Object.values(this.#made)) limiter.close()
  }

  async #call({ by = 'limiter', call, args, as }: Call): Promise<Json> {
    const made = this.#made[by]!
    const given = args.map((each) => this.#argument(each))
    try {
      const answer = await (call in OWN ? OWN[call]!(made, given) : methodOf(made.limiter, call)(...given))
      if (as !== undefined) this.#answers.set(as, answer)
      return toldOf(answer)
    } catch (error) {
      const { name, code, reason } = error as { name: string; code: string; reason?: string }
      return { error: name, code, ...(reason !== undefined && { reason }) }
    }
  }

  #argument(argument: Json): unknown {
    if (typeof argument !== 'string' || !argument.startsWith('$')) return withLimits(argument)
    const answer = this.#answers.get(argument.slice(1))
    return isReservation(answer) ? answer.token : answer
  }
}

interface Made {
  readonly limiter: Limiter | SlidingCount
  readonly store: Store
}

function make(redis: Redis, { options, is, prefix, buckets, resends }: Declared, clock: ManualClock): Made {
  const resending: CommandClient = {
    resends: true,
    command: ([name = '', ...words]) => redis.call(name, ...words),
  }
  const store = redisStore(resends ? resending : redis, {
    ...{ clock: clock.now, prefix: prefix ?? 'slidegate' },
    ...(buckets !== undefined && { buckets }),
  })
  const all = { ...(withLimits(options) as object), store, timeoutMs: 30_000, logger: false }
  if (is === 'slidingCount') return { limiter: slidingCount(all as unknown as SlidingCountOptions), store }
  return { limiter: createLimiter(all as unknown as LimiterOptions), store }
}

/** The same, and limits where their declarations stand. */
function withLimits(json: Json): unknown {
  if (typeof json !== 'object' || json === null) return json
  if ('kind' in json) return limitOf(json)
  if (Array.isArray(json)) return json.map(withLimits)
  return Object.fromEntries(Object.entries(json).map(([name, each]) => [name, withLimits(each)]))
}

/** `consume`, or `overrides.set`. */
function methodOf(limiter: object, path: string): (...args: unknown[]) => unknown {
  const names = path.split('.')
  let [owner, member]: [unknown, unknown] = [undefined, limiter]
  for (const name of names) [owner, member] = [member, (member as Record<string, unknown>)[name]]
  return (member as (...args: unknown[]) => unknown).bind(owner)
}

/** What is asked besides the methods: of the store, as a limiter asks that waits or leases, where it would go by a timer. */
const OWN: Readonly<Record<string, (made: Made, args: readonly unknown[]) => Promise<unknown>>> = {
  /** Requests until one is denied. */
  async drain({ limiter }, [key, options]) {
    for (let admitted = 0; ; admitted++) {
      const denied = await (limiter as Limiter).consume(key as string, options as object)
      if (!denied.allowed) return { admitted, denied: toldOf(denied) }
      if (admitted === 10_000) throw new Error(`of ${key} nothing is ever denied`)
    }
  },

  /** All of them, in order: the store tells them in any. */
  async overrides({ limiter }) {
    const found: Override[] = []
    for await (const override of (limiter as Limiter).overrides.list()) found.push(override)
    return found.toSorted((a, b) => (a.key < b.key ? -1 : 1))
  },

  lease: (made, [key, cost, leaseMs]) => ask(made, key, { cost: cost as number, leaseMs: leaseMs as number }),
}

async function ask({ limiter, store }: Made, key: unknown, op: Partial<ConsumeOp>): Promise<unknown> {
  const set = limitSet(limiter.name, (limiter as Limiter).limits)
  const parts = [{ key: key as string, set }]
  const asked: ConsumeOp = { type: 'consume', parts, cost: 1, count: 1, leaseMs: 0, ...op }
  return (await outcomesOf(store, [asked]))[0]
}

function toldOf(answer: unknown): Json {
  const told = isDecision(answer) ? briefly(answer) : isReservation(answer) ? answer.token : answer
  return JSON.parse(JSON.stringify(told ?? null, plain))
}

function plain(name: string, value: unknown): unknown {
  // By the time that this process has gone through since it was read.
  if (name === 'expiresInMs') return 1000 * Math.ceil((value as number) / 1000)
  if (value === Number.POSITIVE_INFINITY) return 'Infinity'
  return isLimit(value) ? declarationOf(value) : value
}

function isLimit(value: unknown): value is Limit {
  return typeof value === 'object' && value !== null && typeof (value as Limit).kind === 'object'
}

function isDecision(answer: unknown): answer is Decision {
  return typeof answer === 'object' && answer !== null && 'resetAfterMs' in answer
}

function isReservation(answer: unknown): answer is Reservation {
  return typeof answer === 'object' && answer !== null && 'token' in answer
}

/** What it says of each limit, without what was declared. */
function briefly({ allowed, atMs, remaining, retryAfterMs, resetAfterMs, deniedBy, ...more }: Decision) {
  const { blockedMs, limits } = more
  const each = limits.map((limit) => [
    ...[limit.allowed, limit.remaining, limit.retryAfterMs, limit.resetAfterMs],
  ])
  return { allowed, atMs, remaining, retryAfterMs, resetAfterMs, blockedMs, deniedBy, limits: each }
}
