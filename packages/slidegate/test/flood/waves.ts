import { addressKey } from '../../src/http/index.ts'
import {
  createLimiter,
  distinct,
  fixedWindow,
  type Limiter,
  type MemoryStore,
  slidingCounter,
  slidingWindow,
  tokenBucket,
} from '../../src/index.ts'
import type { ManualClock } from '../../src/testing/index.ts'

/** A flood of one kind, and those who are at their limit meanwhile. */
export interface Wave {
  readonly name: string
  /** Asks for the nth foreign key of all, which none has been before. */
  ask(n: number): void
  /** Asks for one of those who are at their limit; answers whether he was denied, by the store. */
  probe(n: number): boolean
  /** What happens after a stretch of it. */
  end?(): void
}

/** Keys that are at their limit, of each limiter. */
export const VICTIMS = 500

const DAY_MS = 86_400_000

/** All of them on one store. */
export function wavesOn(store: MemoryStore, clock: ManualClock): Wave[] {
  const roomy = slidingWindow({ limit: 3, window: '30d', precision: '1h' })

  function wave(
    name: string,
    limiter: Limiter,
    keyOf: (n: number) => string,
    more: Partial<Wave> & { value?: (n: number) => string } = {},
  ): Wave {
    const { value, ...rest } = more
    const options = (n: number) => (value === undefined ? undefined : { value: value(n) })
    for (let victim = 0; victim < VICTIMS; victim++) {
      for (let i = 0; limiter.consumeSync(`limited${victim}`, options(i)).allowed; i++);
    }
    return {
      name,
      ask: (n) => void limiter.consumeSync(keyOf(n), options(n)),
      probe: (n) => {
        const { allowed, source } = limiter.consumeSync(`limited${n % VICTIMS}`, options(-1 - n))
        return !allowed && source === 'store'
      },
      ...rest,
    }
  }

  const limiterOf = (name: string, ...limits: Parameters<typeof createLimiter>[0]['limits'] & object[]) =>
    createLimiter({ name, limits, store })

  const denied = limiterOf('denied', slidingWindow({ limit: 1, window: '10s' }))
  const people = createLimiter({
    name: 'people',
    store,
    dimensions: { user: [roomy], address: [slidingWindow({ limit: 2, window: '30d', precision: '1h' })] },
  })
  const person = (n: number) => ({ user: `limited${n % VICTIMS}`, address: `10.0.0.${n}` })
  for (let n = 0; n < 3 * VICTIMS; n++) people.consumeSync(person(n))

  return [
    wave('new keys', limiterOf('plain', roomy), (n) => `key${n}`),
    wave('long keys, which are hashed', limiterOf('long', roomy), (n) => `${'long '.repeat(40)}${n}`),
    wave('addresses', limiterOf('address', roomy), (n) => {
      return addressKey(`2001:db8:${(n >>> 16).toString(16)}:${(n & 0xffff).toString(16)}::${n.toString(16)}`)
    }),
    wave('keys that all end alike', limiterOf('ends', roomy), (n) => `${n}-the-same-end-of-every-key`),
    // Multiples of 2^17 as far as 32 bits go, then those and one.
    wave('numbers that collide in an unpatched V8', limiterOf('numbers', roomy), (n) => {
      return `${(n % 32_767) * 131_072 + (Math.floor(n / 32_767) % 131_072)}`
    }),
    wave(
      'several limits of all kinds',
      limiterOf(
        'several',
        slidingWindow({ limit: 6, window: '30d', precision: '1h' }),
        fixedWindow({ limit: 5, window: '30d' }),
        tokenBucket({ capacity: 4, refill: 1, interval: '30d' }),
        slidingCounter({ limit: 7, window: '30d' }),
      ),
      (n) => `key${n}`,
    ),
    wave('different values', limiterOf('values', distinct({ limit: 2, window: '30d' })), (n) => `key${n}`, {
      value: (n) => `value${n}`,
    }),
    {
      name: 'keys of several dimensions',
      ask: (n) => void people.consumeSync({ user: `user${n}`, address: `a${n}` }),
      probe: (n) => {
        const { allowed, source } = people.consumeSync({ ...person(n), address: 'b' })
        return !allowed && source === 'store'
      },
    },
    {
      ...wave('keys that are at their limit, and open all at once', limiterOf('opening', roomy), () => ''),
      ask: (n) => void denied.consumeSync(`key${n}`),
      end: () => clock.advance(10_001),
    },
    {
      ...wave('keys that expire all at once', limiterOf('expiring', roomy), () => ''),
      ask: (n) => void denied.consumeSync(`gone${n}`),
      // Longer than expired keys are kept for a clock that may be set back.
      end: () => clock.advance(3_600_000),
    },
    wave('while the clock is set back', limiterOf('back', roomy), (n) => `key${n}`, {
      end: () => clock.advance(-DAY_MS / 24),
    }),
  ]
}
