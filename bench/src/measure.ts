/** The number of turns that each side of a comparison takes. */
export interface Rounds {
  /** The number of each side's turns that are discarded. */
  readonly warmUps: number
  /** The number of each side's turns that count. */
  readonly rounds: number
  /** Minimum time between the starts of two turns of a side. Default: 0, no pause. */
  readonly everyMs?: number
}

/** Halves the rounds, for comparisons with many sides. */
export function half(rounds: Rounds): Rounds {
  const { warmUps, rounds: counted } = rounds
  return { ...rounds, warmUps: Math.ceil(warmUps / 2), rounds: Math.ceil(counted / 2) }
}

/**
 * Runs the sides in turns, A B A B, so that noise affects both. Returns each side's results without the warm-ups.
 */
export async function interleave<Side extends string, Turn>(
  sides: Readonly<Record<Side, () => Promise<Turn>>>,
  { warmUps, rounds, everyMs = 0 }: Rounds,
): Promise<Record<Side, Turn[]>> {
  const names = Object.keys(sides) as Side[]
  const turns = Object.fromEntries(names.map((name) => [name, [] as Turn[]])) as Record<Side, Turn[]>
  const startMs = performance.now()
  for (let round = 0; round < warmUps + rounds; round++) {
    for (const [place, name] of names.entries()) {
      const dueMs = startMs + (round + place / names.length) * everyMs
      // Lets one side's timers and late work finish before the other side's turn.
      await new Promise((resolve) => setTimeout(resolve, Math.max(1, dueMs - performance.now())))
      const turn = await sides[name]()
      if (round >= warmUps) turns[name].push(turn)
    }
  }
  return turns
}

export function median(numbers: readonly number[]): number {
  if (numbers.length === 0) throw new Error('An empty list has no median')
  const sorted = numbers.toSorted((a, b) => a - b)
  const middle = sorted.length >> 1
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2
}

/** Divides one side's numbers by the other side's, round by round. */
export function ratios(above: readonly number[], below: readonly number[]): number[] {
  return above.map((number, round) => number / below[round]!)
}

export function sum(numbers: readonly number[]): number {
  return numbers.reduce((a, b) => a + b, 0)
}
