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

// The script with one fault, many times over: each time some check has to fail that passes by the script as it is. Checks
// are tests of other files, the conformance suite, and histories of fixed seeds, on a real server. The list says which
// check sees a mutant, so that mostly no other is run; where that one does not, all others are. `npm run mutants` looks at
// all mutants, and this by itself at every twentieth.

const script = vi.hoisted(() => ({ SCRIPT: '', SCRIPT_SHA1: '' }))
vi.mock('../../src/stores/redis/script.generated.ts', async (original) =>
  Object.assign(script, await original()),
)
// One server for all checks, since one that runs a loop without an end has to be started again.
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

/** Of as many mutants of a part one is looked at; and what the paths of the parts have in common. */
const { MUTANTS_STEP = '20', MUTANTS_OF = '' } = process.env
const PARTS = MUTANTS.filter(({ part }) => part.includes(MUTANTS_OF))

/** Of a check, by a mutant: some run a loop without an end. */
const LONGEST_MS = 10_000
/** By the script as it is, on a machine that may stand still. */
const PATIENT_MS = 120_000

const built = SCRIPT
const { redis, server } = await useRedis()
redis.on('error', () => {})
fc.configureGlobal({ seed: 1, endOnFailure: true })

// A check that fails leaves promises behind that nobody waits for any more.
process.removeAllListeners('unhandledRejection')
process.on('unhandledRejection', () => {})

const CHECKS = 'checks'
const noted = PARTS.flatMap(({ mutants }) => Object.keys(mutants))
let checks: Check[] = []

describe(CHECKS, () => {
  describeHistories(redis)
  const files = new Set(noted.map((name) => name.split(' > ')[0]!).filter((file) => file.includes('/')))
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
  // The mutants run them: by themselves they do not run.
  const [collected] = suite.tasks.splice(found, 1)
  if (collected?.type === 'suite') checks = checksIn(collected)
})
afterAll(endSuites)

function use(text: string): void {
  Object.assign(script, { SCRIPT: text, SCRIPT_SHA1: sha1Of(text) })
}

/** Why the check fails by this script, if it does. What limiters log of it is not of interest. */
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

/** The check that fails by the mutant, and not by the script as it is. */
async function killerOf(mutants: Mutants, mutant: Mutant, killedBy: string): Promise<string | undefined> {
  const [whole, mutated] = [scriptWith(mutants), scriptWith(mutants, mutant)]
  await redis.script('LOAD', mutated)
  const isNoted = ({ name }: Check) => name === killedBy
  for (const check of [...checks.filter(isNoted), ...checks.filter((check) => !isNoted(check))]) {
    if ((await failureOf(check, mutated, LONGEST_MS)) === undefined) continue
    if ((await failureOf(check, whole)) === undefined) return check.name
  }
  return undefined
}

test('the script without a mutant is the one that is built', () => {
  expect(scriptWith({ part: '' })).toBe(built)
})

test('each text stands once in its part, and the checks that are noted are there', () => {
  for (const mutants of PARTS) {
    for (const mutant of Object.values(mutants.mutants).flat()) scriptWith(mutants, mutant)
  }
  const names = new Set(checks.map(({ name }) => name))
  expect(noted.filter((name) => !names.has(name))).toEqual([])
})

describe.each(PARTS)('$part', (mutants) => {
  const all = Object.entries(mutants.mutants).flatMap(([killedBy, some]) =>
    some.map((mutant) => [killedBy, mutant] as const),
  )
  const looked = all.filter((_, i) => i % Number(MUTANTS_STEP) === 0)

  for (const [killedBy, mutant] of looked) {
    const [text, replacement] = mutant
    test(`${text} -> ${replacement || 'nothing'}`, { timeout: 600_000 }, async () => {
      const killer = await killerOf(mutants, mutant, killedBy)
      expect(killer, 'no check sees it: a test is missing, or it is no fault').toBeDefined()
      if (killer !== killedBy) {
        console.warn(`${text} -> ${replacement}\nis seen by "${killer}" now, and no longer by "${killedBy}"`)
      }
    })
  }
})
