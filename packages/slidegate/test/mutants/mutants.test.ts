// tier: system
import { setTimeout as delay } from 'node:timers/promises'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { sha1Of } from '../../scripts/embed-lua.js'
import { SCRIPT } from '../../src/stores/redis/script.generated.ts'
import { useRedis } from '../support/use-redis.ts'
import { type Check, checksIn, endSuites } from './checks.ts'
import { describeHistories } from './histories.ts'
import { MUTANTS } from './list/index.ts'
import { type Mutant, type Mutants, scriptWith } from './mutant.ts'

// Runs checks on the script with one fault at a time. Some check must fail that passes on the real script.
// Checks are other tests, the conformance suite, and histories with fixed seeds, on a real server. The list names a check for each
// mutant, which runs first. The others run only if it passes. `npm run mutants` tests all mutants, this file every twentieth.

const script = vi.hoisted(() => ({ SCRIPT: '', SCRIPT_SHA1: '' }))
vi.mock('../../src/stores/redis/script.generated.ts', async (original) =>
  Object.assign(script, await original()),
)
// All checks share one server, because it must restart after an endless loop.
vi.mock('../support/use-redis.ts', async (original) => {
  const { useRedis } = await original<{ useRedis: () => Promise<unknown> }>()
  let shared: Promise<unknown> | undefined
  return {
    useRedis: () => {
      shared ??= useRedis()
      return shared
    },
  }
})

/** Tests every nth mutant of the parts whose path contains `MUTANTS_OF`. */
const { MUTANTS_STEP = '20', MUTANTS_OF = '' } = process.env
const PARTS = MUTANTS.filter(({ part }) => part.includes(MUTANTS_OF))

/** Timeout of a check on a mutant. Some loop endlessly. */
const LONGEST_MS = 10_000
/** Timeout on the real script, for a busy machine. */
const PATIENT_MS = 120_000

const built = SCRIPT
const { redis, server } = await useRedis()
redis.on('error', () => {})
fc.configureGlobal({ seed: 1, endOnFailure: true })

// A failed check leaves promises that reject later.
process.removeAllListeners('unhandledRejection')
process.on('unhandledRejection', () => {})

const CHECKS = 'checks'
const named = PARTS.flatMap(({ mutants }) => Object.keys(mutants))
let checks: Check[] = []

describe(CHECKS, () => {
  describeHistories(redis)
  const files = new Set(named.map((name) => name.split(' > ')[0]!).filter((file) => file.includes('/')))
  for (const file of files) {
    describe(file, async () => {
      const [folder, name] = file.split('/')
      await import(`../${folder}/${name}.test.ts`)
    })
  }
})

// biome-ignore lint/correctness/noEmptyPattern: Vitest takes no other first argument
beforeAll(({}, suite) => {
  const found = suite.tasks.findIndex(({ name }) => name === CHECKS)
  // Removes the checks from this run. The mutants run them.
  const [collected] = suite.tasks.splice(found, 1)
  if (collected?.type === 'suite') checks = checksIn(collected)
})
afterAll(endSuites)

function use(text: string): void {
  Object.assign(script, { SCRIPT: text, SCRIPT_SHA1: sha1Of(text) })
}

/** Runs a check on a script, without log output. Returns the failure, if any. */
async function failureOf(check: Check, text: string, longestMs = PATIENT_MS): Promise<unknown> {
  use(text)
  const warn = vi.spyOn(console, 'warn').mockImplementation(() => {})
  await redis.flushall()
  const isLate = delay(longestMs, 'late', { ref: false })
  const failure = await Promise.race([check.run().catch((error: unknown) => error ?? 'no reason'), isLate])
  vi.useRealTimers()
  warn.mockRestore()
  if (failure === 'late') {
    await server.kill()
    await server.start()
    await vi.waitFor(() => redis.ping(), { timeout: PATIENT_MS })
  }
  return failure
}

/** Returns the check that fails on the mutant and passes on the real script. */
async function killerOf(mutants: Mutants, mutant: Mutant, killedBy: string): Promise<string | undefined> {
  const [whole, mutated] = [scriptWith(mutants), scriptWith(mutants, mutant)]
  await redis.script('LOAD', mutated)
  const isNamed = ({ name }: Check) => name === killedBy
  for (const check of [...checks.filter(isNamed), ...checks.filter((check) => !isNamed(check))]) {
    if ((await failureOf(check, mutated, LONGEST_MS)) === undefined) continue
    if ((await failureOf(check, whole)) === undefined) return check.name
  }
  return undefined
}

test('the script without a mutant equals the built one', () => {
  expect(scriptWith({ part: '' })).toBe(built)
})

test('each mutant text occurs once in its part, and each named check exists', () => {
  for (const mutants of PARTS) {
    for (const mutant of Object.values(mutants.mutants).flat()) scriptWith(mutants, mutant)
  }
  const names = new Set(checks.map(({ name }) => name))
  expect(named.filter((name) => !names.has(name))).toEqual([])
})

describe.each(PARTS)('$part', (mutants) => {
  const all = Object.entries(mutants.mutants).flatMap(([killedBy, some]) =>
    some.map((mutant) => [killedBy, mutant] as const),
  )
  const tested = all.filter((_, i) => i % Number(MUTANTS_STEP) === 0)

  for (const [killedBy, mutant] of tested) {
    const [text, replacement] = mutant
    test(`${text} -> ${replacement || 'nothing'}`, { timeout: 600_000 }, async () => {
      const killer = await killerOf(mutants, mutant, killedBy)
      expect(
        killer,
        'No check detects this mutant. Add a test, or remove the mutant if it has no effect.',
      ).toBeDefined()
      if (killer !== killedBy) {
        console.warn(`${text} -> ${replacement}\nis now detected by "${killer}", no longer by "${killedBy}"`)
      }
    })
  }
})
