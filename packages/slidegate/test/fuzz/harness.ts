import { setImmediate as nextTurn } from 'node:timers/promises'
import fc from 'fast-check'
import { it } from 'vitest'
import { BUDGETS, type TargetName } from './budgets.ts'

/** What is done before each round of inputs, such as starting a server; what it answers is called behind them. */
export type Round = () => Promise<() => Promise<void>>

/** So many inputs at a time, each round by a seed of its own: always the same but in the long form. */
const ROUND = 1000
const PROGRESS_MS = 10_000
/** No input takes nearly as long, on a machine however busy. */
const HANGS_MS = 60_000

const TURN = 50
const MAX_SHOWN = 2000

const { FUZZ_INPUTS, FUZZ_SEED, FUZZ_PATH } = process.env
const isLong = FUZZ_INPUTS !== undefined
const isReplay = FUZZ_PATH !== undefined

/**
 * A test that something holds for whatever strangers may hand in. A failure tells the seed and the path of the smallest
 * input that was found; `npm run fuzz -- --target <name> --seed <seed> --path <path>` replays it.
 */
export function fuzz<Input>(
  name: TargetName,
  inputs: fc.Arbitrary<Input>,
  holds: (input: Input) => void | Promise<void>,
  round?: Round,
): void {
  const count = isReplay ? 1 : countOf(name)
  const firstSeed = Number(FUZZ_SEED ?? (isLong ? Math.floor(Math.random() * 2 ** 31) : 1))
  it(name, { timeout: isLong ? 2 ** 31 - 1 : 300_000 }, async () => {
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
    // What is never waited for would keep timers and sockets from their turn.
    if (++played % TURN === 0) await nextTurn()
  })
  const { failed, seed, counterexamplePath, counterexample, errorInstance } = await fc.check(
    property,
    parameters,
  )
  if (!failed) return
  // What has failed may be of any length.
  const shown = fc.stringify(counterexample?.[0]).slice(0, MAX_SHOWN)
  throw new Error(`--seed ${seed} --path ${counterexamplePath}: ${shown}`, { cause: errorInstance })
}

/** Inputs of a target in this run. */
function countOf(name: TargetName): number {
  if (!isLong) return BUDGETS[name].usual
  const total = Object.values(BUDGETS).reduce((sum, { share }) => sum + share, 0)
  return Math.ceil((Number(FUZZ_INPUTS) * BUDGETS[name].share) / total)
}

class Progress {
  readonly #name: string
  readonly #count: number
  readonly #startMs = performance.now()
  #toldMs = this.#startMs

  constructor(name: string, count: number, seed: number) {
    this.#name = name
    this.#count = count
    this.#say(`${count} inputs, the first round by seed ${seed}`)
  }

  tell(done: number): void {
    const nowMs = performance.now()
    if (done < this.#count && nowMs - this.#toldMs < PROGRESS_MS) return
    this.#toldMs = nowMs
    this.#say(`${done} of ${this.#count} after ${((nowMs - this.#startMs) / 1000).toFixed(1)} s`)
  }

  #say(text: string): void {
    if (isLong || isReplay) console.error(`${this.#name}: ${text}`)
  }
}
