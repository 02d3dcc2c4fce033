import assert from 'node:assert/strict'

export const WEIGHED_WINDOW_MS = 60_000

const WINDOWS = 3

/** Measurements per window. */
const WEIGHINGS = 50

export interface Weighed {
  /** Makes a request at this time. `number` is unique. */
  isAdmitted(atMs: number, number: number): Promise<boolean>
  bytesAt(atMs: number): Promise<number>
  readonly admitsAll: boolean
}

/** Sends steady traffic at the limit. Returns measurements of the key's bytes. */
export async function weigh(
  limit: number,
  { isAdmitted, bytesAt, admitsAll }: Weighed,
  windows: number = WINDOWS,
): Promise<number[]> {
  const startMs = Date.now()
  const atOnce = limit / WEIGHINGS
  const weights: number[] = []
  let admitted = 0
  for (let sent = 0; sent < windows * limit; sent += atOnce) {
    const times = Array.from(
      { length: atOnce },
      (_, i) => startMs + Math.floor(((sent + i) * WEIGHED_WINDOW_MS) / limit),
    )
    const answers = await Promise.all(times.map((atMs, i) => isAdmitted(atMs, sent + i)))
    admitted += answers.filter((answer) => answer).length
    weights.push(await bytesAt(times.at(-1)!))
  }
  const least = admitsAll ? windows * limit : (windows * limit) / 2
  assert(admitted >= least, `${admitted} of ${windows * limit} requests admitted`)
  return weights
}
