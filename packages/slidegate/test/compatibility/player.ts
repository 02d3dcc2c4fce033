import '../../src/calendar.ts'
import type { Redis } from 'ioredis'
import {
  type ConsumeOptions,
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

/** A limiter or count as JSON. Limits are written as their declarations. */
export interface Declared {
  readonly options: Json
  readonly is?: 'slidingCount'
  /** The prefix of its store. */
  readonly prefix?: string
  readonly buckets?: number
  /** Whether its client resends a command whose reply was lost. */
  readonly resends?: true
}

/** A call of a method, or of one of the player's own operations. */
export interface Call {
  /** The name of the limiter, if there are several. */
  readonly by?: string
  readonly call: string
  /** Arguments. `$name` is the result of the call with this name: a decision, or the token of a reservation. */
  readonly args: readonly Json[]
  readonly as?: string
  /** The number of calls, and `everyMs` the pause between them. Only the last result is recorded. */
  readonly times?: number
  readonly everyMs?: number
}

export interface Wait {
  readonly afterMs: number
}

/** Restarts the process, so that its state is read from the store. */
export interface Restart {
  readonly restart: true
}

export type Step = Call | Wait | Restart

/** Runs steps on limiters that use one Redis. */
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

  /** Sets the result of an earlier process's call. */
  remember(name: string, result: Json): void {
    this.#answers.set(name, result)
  }

  /** Runs a step. Returns the result as JSON, or an error's code and reason. Waits and restarts have no result. */
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
    let result: Json = null
    for (let i = 0; i < (step.times ?? 1); i++) {
      if (i > 0) this.#clock.advance(step.everyMs ?? 0)
      result = await this.#call(step)
    }
    return result
  }

  close(): void {
    for (const { limiter } of Object.values(this.#made)) limiter.close()
  }

  async #call({ by = 'limiter', call, args, as }: Call): Promise<Json> {
    const made = this.#made[by]!
    const given = args.map((each) => this.#argument(each))
    try {
      const play = OWN[call] ?? (({ limiter }, words) => methodOf(limiter, call)(...words))
      const answer = await play(made, given)
      if (as !== undefined) this.#answers.set(as, answer)
      return jsonOf(answer)
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

/** Replaces declarations with limits. */
function withLimits(json: Json): unknown {
  if (typeof json !== 'object' || json === null) return json
  if ('kind' in json) return limitOf(json)
  if (Array.isArray(json)) return json.map(withLimits)
  return Object.fromEntries(Object.entries(json).map(([name, each]) => [name, withLimits(each)]))
}

/** Resolves a path such as `consume` or `overrides.set`. */
function methodOf(limiter: object, path: string): (...args: unknown[]) => unknown {
  const names = path.split('.')
  let [owner, member]: [unknown, unknown] = [undefined, limiter]
  for (const name of names) [owner, member] = [member, (member as Record<string, unknown>)[name]]
  return (member as (...args: unknown[]) => unknown).bind(owner)
}

/** The player's own operations. They call the store directly where a limiter would use a timer. */
const OWN: Readonly<Record<string, (made: Made, args: readonly unknown[]) => unknown>> = {
  consume: ({ limiter }, [key, options]) => consume(limiter as Limiter, key as string, options as object),

  /** Makes requests until one is denied. */
  async drain({ limiter }, [key, options]) {
    for (let admitted = 0; ; admitted++) {
      const denied = await consume(limiter as Limiter, key as string, options as object)
      if (!denied.allowed) return { admitted, denied: jsonOf(denied) }
      if (admitted === 10_000) throw new Error(`no request for ${key} was denied`)
    }
  },

  /** Returns all overrides, sorted. The store returns them in any order. */
  async overrides({ limiter }) {
    const found: Override[] = []
    for await (const override of (limiter as Limiter).overrides.list()) found.push(override)
    return found.toSorted((a, b) => (a.key < b.key ? -1 : 1))
  },

  lease: (made, [key, cost, leaseMs]) => ask(made, key, { cost: cost as number, leaseMs: leaseMs as number }),
}

/** A slot without an id of its own can only be acquired. */
async function consume(limiter: Limiter, key: string, options?: ConsumeOptions): Promise<Decision> {
  const isHeld = limiter.limits?.some(({ kind }) => kind.entries?.are === 'holder')
  if (!isHeld || options?.requestId !== undefined) return limiter.consume(key, options)
  return (await limiter.acquire(key, options)).decision
}

async function ask({ limiter, store }: Made, key: unknown, op: Partial<ConsumeOp>): Promise<unknown> {
  const set = limitSet(limiter.name, (limiter as Limiter).limits)
  const parts = [{ key: key as string, set }]
  const asked: ConsumeOp = { type: 'consume', parts, cost: 1, count: 1, leaseMs: 0, ...op }
  return (await outcomesOf(store, [asked]))[0]
}

function jsonOf(answer: unknown): Json {
  const result = isDecision(answer) ? briefly(answer) : isReservation(answer) ? answer.token : answer
  return JSON.parse(JSON.stringify(result ?? null, plain))
}

function plain(name: string, value: unknown): unknown {
  // Rounded up to whole seconds, because this process measures it.
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

/** Returns the decision without the declared properties of its limits. */
function briefly({ allowed, atMs, remaining, retryAfterMs, resetAfterMs, deniedBy, ...more }: Decision) {
  const { blockedMs, limits } = more
  const each = limits.map((limit) => [
    ...[limit.allowed, limit.remaining, limit.retryAfterMs, limit.resetAfterMs],
  ])
  return { allowed, atMs, remaining, retryAfterMs, resetAfterMs, blockedMs, deniedBy, limits: each }
}
