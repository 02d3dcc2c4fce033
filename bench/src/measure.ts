/** How often the sides of a comparison take their turns. */
export interface Rounds {
  /** Turns of each side that count for nothing. */
  readonly warmUps: number
  /** Turns of each side that count. */
  readonly rounds: number
  /** Least time from one turn of a side to its next; 0: as fast as it goes. */
  readonly everyMs?: number
}

/** For comparisons of many sides, in which a round takes long. */
export function half(rounds: Rounds): Rounds {
  const { warmUps, rounds: counted } = rounds
  return { ...rounds, warmUps: Math.ceil(warmUps / 2), rounds: Math.ceil(counted / 2) }
}

/**
 * Lets the sides take turns, A B A B ..., so that whatever disturbs the machine disturbs both. Answers what
 * each side's turns gave, without the warm-ups.
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
      // Between turns the event loop runs freely: timers and late work of one side are not the other's.
      await new Promise((resolve) => setTimeout(resolve, Math.max(1, dueMs - performance.now())))
      const turn = await sides[name]()
      if (round >= warmUps) turns[name].push(turn)
    }
  }
  return turns
}

export function median(numbers: readonly number[]): number {
  if (numbers.length === 0) throw new Error('the median of nothing')
  const sorted = numbers.toSorted((a, b) => a - b)
  const middle = sorted.length >> 1
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2
}

/** Round by round: what one side gave against what the other gave next to it. */
export function ratios(above: readonly number[], below: readonly number[]): number[] {
  return above.map((number, round) => number / below[round]!)
}

export function sum(numbers: readonly number[]): number {
  return numbers.reduce((a, b) => a + b, 0)
}
