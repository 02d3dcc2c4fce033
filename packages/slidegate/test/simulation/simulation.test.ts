// tier: system
import { expect, it, vi } from 'vitest'
import { simulate } from './simulation.ts'

// Simulates everything above the store, on a store that fails at random: batches, deadlines, breakers, failure
// policies, late replies, deny caches and leases of several processes. Time is simulated too, so a run depends only
// on its seed. `npm run simulate -- --seed 7` runs and prints one, `-- --seeds 10000 --from 1` runs many.

// These two modules read the real time functions before they can be replaced.
vi.mock(import('../../src/runtime/clock.ts'), async (original) => ({
  ...(await original()),
  monotonicClock: () => Date.now(),
}))
vi.mock('node:timers/promises', () => ({
  setTimeout: (ms: number) =>
    new Promise((resolve) => {
      setTimeout(resolve, ms).unref()
    }),
}))

const { SIMULATION_SEED, SIMULATION_SEEDS = '250', SIMULATION_FROM = '1' } = process.env

/** Stops after this many failing seeds. */
const MOST_FAILURES = 5

/** Events that 500 or more runs must contain. A simulation without them would test nothing. */
const SEEN: readonly string[] = [
  'allowed by store',
  'allowed by lease',
  'allowed by fallback',
  'allowed by failOpen',
  'denied by store',
  'denied by denyCache',
  'denied by fallback',
  'denied by failClosed',
  'error timeout',
  'error error',
  'error down',
  'damaged',
  'late admissions',
  'late returns',
  'returns',
  'returns lost',
  'charges kept for allowed requests',
  'replies lost',
  'lost requests',
  'balances without loss',
  'stale denials',
  'store down',
  'probes',
  'calls to a silent server',
  'stalls',
  'floods',
  'lease trials',
  'denial trials',
  'flushes',
  'steps',
  'observed clock steps',
]

if (SIMULATION_SEED !== undefined) {
  it(`seed ${SIMULATION_SEED} keeps all guarantees`, async () => {
    const { lines, violations } = await simulate(Number(SIMULATION_SEED), true)
    process.stdout.write(`${lines.join('\n')}\n`)
    expect(violations).toEqual([])
  })
} else {
  it('decisions and charges agree, whatever happens to the store', async () => {
    const failures: string[] = []
    const seen = new Map<string, number>()
    const first = Number(SIMULATION_FROM)
    const end = first + Number(SIMULATION_SEEDS)
    for (let seed = first; seed < end && failures.length < MOST_FAILURES; seed++) {
      const { counts, violations } = await simulate(seed)
      for (const [what, times] of counts) seen.set(what, (seen.get(what) ?? 0) + times)
      if (violations.length === 0) continue
      failures.push([`npm run simulate -- --seed ${seed}`, ...violations].join('\n  '))
    }
    expect(failures.join('\n')).toBe('')
    if (end - first >= 500) expect(SEEN.filter((what) => !seen.has(what))).toEqual([])
    if (process.env.SIMULATION_SEEDS !== undefined) console.log(seen)
  })

  it('the same seed gives the same run', async () => {
    for (const seed of [1, 2, 3]) {
      const { lines } = await simulate(seed, true)
      expect(lines.length).toBeGreaterThan(100)
      expect((await simulate(seed, true)).lines).toEqual(lines)
    }
  })
}
