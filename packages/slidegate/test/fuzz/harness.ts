import { setImmediate as nextTurn } from 'node:timers/promises'
import fc from 'fast-check'
import { it } from 'vitest'
import { BUDGETS, type TargetName } from './budgets.ts'

/** Runs before each round of inputs, for example to start a server. Returns a cleanup function. */
export type Round = () => Promise<() => Promise<void>>

/** Inputs per round. Each round has its own seed, which is always the same except in a long run. */
const ROUND = 1000
const PROGRESS_MS = 10_000
/** Longer than any input takes, however busy the machine. */
const HANGS_MS = 60_000

const TURN = 50
const MAX_SHOWN = 2000

const { FUZZ_INPUTS, FUZZ_SEED, FUZZ_PATH } = process.env
const isLong = FUZZ_INPUTS !== undefined
const isReplay = FUZZ_PATH !== undefined

/**
 * Registers a test that something holds for arbitrary input.
 * A failure reports the seed and path of the smallest failing input. Replay it with `npm run fuzz -- --target <name> --seed
 * <seed> --path <path>`.
 */
export function fuzz<Input>(
  name: TargetName,
  inputs: fc.Arbitrary<Input>,
  holds: (input: Input) => void | Promise<void>,
  round?: Round,
): void {
  const count = isReplay ? 1 : countOf(name)
  const firstSeed = Number(FUZZ_SEED ?? (isLong ? Math.floor(Math.random() * 2 ** 31) : 1))
  it(`fuzzing ${name} finds no failure`, { timeout: isLong ? 2 ** 31 - 1 : 300_000 }, async () => {
    const progress = new Progress(name, count, firstSeed)
    for (let done = 0; done < count; done += ROUND) {
      const numRuns = Math.min(ROUND, count - done)
      const end = await round?.()
      try {
        await play(inputs, holds, {
          seed: firstSeed + done / ROUND,
          numRuns,
          timeout: HANGS_MS,
          ...(isReplay && { path: FUZZ_PATH, endOnFailure: true }),
        })
      } finally {
        await end?.()
      }
      progress.tell(done + numRuns)
    }
  })
}

async function play<Input>(
  inputs: fc.Arbitrary<Input>,
  holds: (input: Input) => void | Promise<void>,
  parameters: fc.Parameters<[Input]>,
): Promise<void> {
  let played = 0
  const property = fc.asyncProperty(inputs, async (input) => {
    await holds(input)
    // Without a pause, timers and sockets would never get their turn.
    if (++played % TURN === 0) await nextTurn()
  })
  const { failed, seed, counterexamplePath, counterexample, errorInstance } = await fc.check(
    property,
    parameters,
  )
  if (!failed) return
  // The failing input may be very long.
  const shown = fc.stringify(counterexample?.[0]).slice(0, MAX_SHOWN)
  throw new Error(`--seed ${seed} --path ${counterexamplePath}: ${shown}`, { cause: errorInstance })
}

/** Returns the number of inputs of a target in this run. */
function countOf(name: TargetName): number {
  if (!isLong) return BUDGETS[name].usual
  const total = Object.values(BUDGETS).reduce((sum, { share }) => sum + share, 0)
  return Math.ceil((Number(FUZZ_INPUTS) * BUDGETS[name].share) / total)
}

class Progress {
  readonly #name: string
  readonly #count: number
  readonly #startMs = performance.now()
  #reportedMs = this.#startMs

  constructor(name: string, count: number, seed: number) {
    this.#name = name
    this.#count = count
    this.#say(`${count} inputs, first seed ${seed}`)
  }

  tell(done: number): void {
    const nowMs = performance.now()
    if (done < this.#count && nowMs - this.#reportedMs < PROGRESS_MS) return
    this.#reportedMs = nowMs
    this.#say(`${done} of ${this.#count} after ${((nowMs - this.#startMs) / 1000).toFixed(1)} s`)
  }

  #say(text: string): void {
    if (isLong || isReplay) console.error(`${this.#name}: ${text}`)
  }
}
