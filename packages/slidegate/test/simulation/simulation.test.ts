// tier: system
import { expect, it, vi } from 'vitest'
import { simulate } from './simulation.ts'

// Everything above the store, on a store that fails at random: batches, deadlines, breakers, failure policies, late replies,
// deny caches and leases of several processes, in a time that is simulated with the rest. All of a run follows from its seed.
// `npm run simulate -- --seed 7` plays one and prints it, `-- --seeds 10000 --from 1` plays many.

// These two take hold of real time before it can be replaced.
vi.mock('../../src/runtime/clock.ts', () => ({ monotonicClock: () => Date.now() }))
vi.mock('node:timers/promises', () => ({
  setTimeout: (ms: number) =>
    new Promise((resolve) => {
      setTimeout(resolve, ms).unref()
    }),
}))

const { SIMULATION_SEED, SIMULATION_SEEDS = '250', SIMULATION_FROM = '1' } = process.env

/** Seeds that fail before no more are tried. */
const MOST_FAILURES = 5

/** What 250 runs must have seen: a simulation in which nothing happens finds nothing. */
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
  'kept by right',
  'replies lost',
  'lost on the way there',
  'balances without loss',
  'stale denials',
  'store down',
  'probes',
  'asked a silent server',
  'stalls',
  'floods',
  'trials of leases',
  'trials of denials',
  'flushes',
  'steps',
  'clock steps seen',
]

if (SIMULATION_SEED !== undefined) {
  it(`seed ${SIMULATION_SEED}`, async () => {
    const { lines, violations } = await simulate(Number(SIMULATION_SEED), true)
    process.stdout.write(`${lines.join('\n')}\n`)
    expect(violations).toEqual([])
  })
} else {
  it('whatever befalls the store, what is told and what is charged agree', async () => {
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

  it('the same seed is the same run', async () => {
    for (const seed of [1, 2, 3]) {
      const { lines } = await simulate(seed, true)
      expect(lines.length).toBeGreaterThan(100)
      expect((await simulate(seed, true)).lines).toEqual(lines)
    }
  })
}
