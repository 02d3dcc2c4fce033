import fc from 'fast-check'
import {
  concurrency,
  createLimiter,
  type Decision,
  distinct,
  fixedWindow,
  type Limit,
  type Limiter,
  type Reservation,
  type Store,
  slidingCounter,
  slidingWindow,
  tokenBucket,
} from '../../src/index.ts'
import { listed } from '../support/overrides.ts'
import { type Given, Hostility, hostile, mutated, nearly, numbers, plain, texts } from './hostile.ts'
import { expectTyped } from './sense.ts'

// Calls every public method of a limiter with arbitrary arguments.

const window = '1m'
const ban = { after: 3, within: '1m', for: '1m' } as const
const ROOM = 100

/** Limiters of every form, to be created on a store. */
const FORMS: readonly ((store: Store) => Limiter)[] = [
  (store) => make(store, { limits: [slidingWindow({ limit: ROOM, window })] }),
  (store) =>
    make(store, {
      limits: [
        slidingWindow({ limit: ROOM, window, name: 'sliding' }),
        fixedWindow({ limit: ROOM, window, name: 'fixed' }),
        tokenBucket({ capacity: ROOM, refill: 1, interval: window, name: 'bucket' }),
        slidingCounter({ limit: ROOM, window, name: 'shadow', shadow: true }),
      ],
      ban,
    }),
  (store) =>
    make(store, {
      limits: [
        slidingWindow({ limit: ROOM, window, log: 'zset' }),
        concurrency({ limit: ROOM, ttl: window, name: 'held' }),
      ],
    }),
  (store) => make(store, { limits: [slidingWindow({ limit: ROOM, window, log: 'stream' })] }),
  (store) => make(store, { limits: [distinct({ limit: ROOM, window })] }),
  (store) => make(store, { limits: [fixedWindow({ limit: ROOM, window })], overrides: true, ban }),
  (store) =>
    make(store, { limits: [slidingWindow({ limit: ROOM, window, name: 'minute' })], overrides: true }),
  // The caller passes the limits, whatever they are.
  (store) =>
    make(store, {
      limits: (_: string, request: unknown) =>
        (request ?? [slidingWindow({ limit: ROOM, window })]) as Limit[],
    }),
  (store) =>
    make(store, {
      dimensions: {
        user: [slidingWindow({ limit: ROOM, window })],
        ip: [fixedWindow({ limit: ROOM, window })],
        constructor: [tokenBucket({ capacity: ROOM, refill: 1, interval: window })],
      },
      ban: { user: ban },
      overrides: true,
    }),
]

export const FORM_COUNT: number = FORMS.length

function make(store: Store, options: object): Limiter {
  return createLimiter({ ...options, store, timeoutMs: 60_000, logger: false } as Parameters<
    typeof createLimiter
  >[0])
}

/** Results of earlier calls, which later calls may use as arguments. */
interface Played {
  readonly decisions: Decision[]
  readonly reservations: Reservation[]
}

type Method = (limiter: Limiter, args: readonly unknown[], played: Played) => unknown

// Types of the arguments, whatever was generated.
type Arguments = [never, never, never]

function called(name: Exclude<keyof Limiter, 'name' | 'limits' | 'overrides'>): Method {
  return (limiter, args) => (limiter[name] as (...args: unknown[]) => unknown)(...args)
}

/** Add new limiter methods here. */
type Asked = Exclude<
  keyof Limiter,
  'name' | 'limits' | 'overrides' | 'stats' | 'close' | 'wait' | 'schedule' | 'waiting' | 'on' | 'off'
>

const METHODS: Readonly<Record<Asked, Method>> & Readonly<Record<string, Method>> = {
  consume: called('consume'),
  consumeSync: called('consumeSync'),
  consumeMany: (limiter, [key, options, other]) =>
    limiter.consumeMany([{ key, ...(options as object) }, { key: 'another' }, other] as Arguments),
  consumeManyOf: (limiter, [, , requests]) => limiter.consumeMany(requests as never),
  peek: called('peek'),
  charge: (limiter, [key, options, units]) => limiter.charge(...([key, units, options] as Arguments)),
  acquire: called('acquire'),
  release: (limiter, [key, options, id]) => limiter.release(...([key, id, options] as Arguments)),
  extend: (limiter, [key, options, id]) => limiter.extend(...([key, id, options] as Arguments)),
  list: called('list'),
  explain: called('explain'),
  refund: (limiter, [key, , units], { decisions }) =>
    limiter.refund(...([key, decisions.at(-1), units] as Arguments)),
  refundOf: (limiter, [key, decision, units]) => limiter.refund(...([key, decision, units] as Arguments)),
  reserve: (limiter, [key, options, estimate]) => limiter.reserve(...([key, estimate, options] as Arguments)),
  settle: (limiter, [, options, actual], { reservations }) =>
    limiter.settle(...([reservations.at(-1)?.token, actual, options] as Arguments)),
  settleOf: (limiter, [token, options, actual]) => limiter.settle(...([token, actual, options] as Arguments)),
  cancel: called('cancel'),
  reset: called('reset'),
  block: (limiter, [key, , duration]) => limiter.block(...([key, duration] as unknown as [never, never])),
  unblock: called('unblock'),
  isBlocked: called('isBlocked'),
  setOverride: (limiter, [key, options, limits]) =>
    limiter.overrides.set(...([key, limits, options] as Arguments)),
  getOverride: (limiter, [key]) => limiter.overrides.get(key as never),
  deleteOverride: (limiter, [key]) => limiter.overrides.delete(key as never),
  listOverrides: (limiter) => listed(limiter),
}

/** Methods that may take time, and methods that change listeners. */
const LASTING: Readonly<Record<string, Method>> = {
  wait: (limiter, [key, options]) => limiter.wait(key as never, options as never),
  schedule: (limiter, [key, options, task]) => limiter.schedule(...([key, task, options] as Arguments)),
  waiting: called('waiting'),
  on: (limiter, [event, , listener]) => limiter.on(event as never, listener as never),
  off: (limiter, [event, , listener]) => limiter.off(event as never, listener as never),
}

export interface Call {
  readonly method: string
  readonly args: readonly Given[]
}

const words = fc.constantFrom('user:42', 'k', '__proto__', '{x}', 'a:b', '2001:db8::/64')
const key = fc.oneof(
  { weight: 4, arbitrary: words.map(plain) },
  { weight: 2, arbitrary: mutated(words).map(plain) },
  {
    weight: 4,
    arbitrary: nearly(
      fc.record(
        { user: words, ip: words, constructor: words },
        { requiredKeys: ['user', 'ip', 'constructor'] },
      ),
      ['user', 'ip', 'constructor', '__proto__', 'other'],
    ),
  },
  { weight: 2, arbitrary: hostile },
)

const limits = fc.constantFrom(
  [slidingWindow({ limit: 5, window })],
  [fixedWindow({ limit: 5, window: '1h' }), slidingWindow({ limit: 7, window })],
)

const numbersOfLimit = fc.record(
  {
    limit: fc.constantFrom(1, ROOM, 2 ** 40),
    window: fc.constantFrom('1s', '1h', 366 * 86_400_000),
    capacity: fc.constantFrom(1, ROOM, 2 ** 40),
    refill: fc.constantFrom(1, 2 ** 40),
  },
  { requiredKeys: [] },
)

/** Changes for an override. */
const changes = fc.oneof(
  fc.constantFrom('exempt', 'block', `${ROOM}-per-1m`).map(plain),
  nearly(numbersOfLimit, ['limit', 'window', 'capacity', 'refill', '__proto__']),
  nearly(fc.dictionary(fc.constantFrom(`${ROOM}-per-1m`, 'minute', '', '__proto__'), numbersOfLimit), [
    'minute',
    'other',
  ]),
)

const options = fc.oneof(
  { weight: 2, arbitrary: fc.constant(undefined).map(plain) },
  {
    weight: 6,
    arbitrary: nearly(
      fc.record(
        {
          cost: fc.integer({ min: 1, max: 120 }),
          requestId: words,
          value: words,
          request: limits,
          maxWaitMs: fc.constant(0),
          priority: fc.integer(),
          ttl: fc.constantFrom('1m', 10_000),
        },
        { requiredKeys: [] },
      ),
      [
        'cost',
        'requestId',
        'value',
        'request',
        'maxWaitMs',
        'priority',
        'signal',
        'ttl',
        'limits',
        '__proto__',
      ],
    ),
  },
)

const strikes = () => {
  throw new Hostility('thrown by a function')
}

const third = fc.oneof(
  { weight: 3, arbitrary: fc.integer({ min: 1, max: 120 }).map(plain) },
  { weight: 1, arbitrary: numbers.map(plain) },
  { weight: 1, arbitrary: limits.map(plain) },
  { weight: 2, arbitrary: changes },
  { weight: 1, arbitrary: fc.constantFrom('1m', '10s', '366d', '0s').map(plain) },
  {
    weight: 1,
    arbitrary: fc
      .constantFrom(
        () => 1,
        strikes,
        async () => strikes(),
      )
      .map(plain),
  },
  { weight: 1, arbitrary: mutated(texts).map(plain) },
  { weight: 2, arbitrary: hostile },
)

function callOf(methods: Readonly<Record<string, Method>>): fc.Arbitrary<Call> {
  return fc.record({
    method: fc.constantFrom(...Object.keys(methods)),
    args: fc.tuple(
      fc.oneof(
        { weight: 9, arbitrary: key },
        { weight: 1, arbitrary: fc.constantFrom('decision', 'storeError', 'storeRecovered').map(plain) },
      ),
      options,
      third,
    ),
  })
}

/** Calls that settle immediately. */
export const calls: fc.Arbitrary<Call> = callOf(METHODS)

/** Any calls. */
export const anyCalls: fc.Arbitrary<Call> = callOf({ ...METHODS, ...LASTING })

/** The result of a call, or the error code. */
export type Answer = { readonly value: unknown } | { readonly refused: string }

/**
 * Plays calls on a limiter of a given form.
 * Returns the results of calls that settle immediately. Leaves nothing running.
 */
export async function playCalls(
  store: Store,
  form: number,
  played: readonly Call[],
): Promise<readonly Answer[]> {
  const limiter = FORMS[form]!(store)
  const past: Played = { decisions: [], reservations: [] }
  const answers: Answer[] = []
  const lasting: Promise<unknown>[] = []
  for (const { method, args } of played) {
    const made = args.map((given) => given.make())
    const lasts = LASTING[method]
    if (lasts !== undefined) {
      lasting.push(answerOf(() => lasts(limiter, made, past)))
      continue
    }
    const answer = await answerOf(() => METHODS[method]!(limiter, made, past))
    if ('value' in answer) keep(answer.value, past)
    answers.push(answer)
  }
  limiter.close()
  await Promise.all(lasting)
  return answers
}

async function answerOf(ask: () => unknown): Promise<Answer> {
  try {
    return { value: await ask() }
  } catch (error) {
    expectTyped(error)
    return { refused: String((error as { code?: string }).code ?? 'hostility') }
  }
}

function keep(value: unknown, { decisions, reservations }: Played): void {
  if (isDecision(value)) decisions.push(value)
  if (Array.isArray(value)) decisions.push(...value.filter(isDecision))
  if (isReservation(value)) reservations.push(value)
}

export function isDecision(value: unknown): value is Decision {
  return typeof value === 'object' && value !== null && 'deniedBy' in value && 'remaining' in value
}

function isReservation(value: unknown): value is Reservation {
  return typeof value === 'object' && value !== null && 'token' in value
}
