// Sends a log through limiters, in the order of time.

import type { Tally } from './counts/tally.ts'
import type { Decider } from './decider.ts'
import { type LoggedRequest, type ParseLine, Skipped } from './log/parse-line.ts'
import type { ReorderBuffer } from './log/reorder-buffer.ts'

/** A limiter that the log goes through, and the count of what it decides. */
export interface Run {
  readonly decider: Decider
  readonly tally: Tally
}

export interface Replayed {
  requests: number
  readonly skipped: Skipped
  /** When the first and the last request were made; 0 where there are none. */
  fromMs: number
  toMs: number
}

/** Requests decided in one go: as many as are in flight to Redis at once. */
const BATCH = 1024

/** Sends the requests of a log, in the order of time, through each of the runs. */
export async function replay(
  portions: AsyncIterable<readonly string[]>,
  parse: ParseLine,
  buffer: ReorderBuffer,
  runs: readonly Run[],
): Promise<Replayed> {
  const replayed: Replayed = { requests: 0, skipped: new Skipped(), fromMs: 0, toMs: 0 }

  async function decide(requests: readonly LoggedRequest[]): Promise<void> {
    if (replayed.requests === 0) replayed.fromMs = requests[0]!.timeMs
    replayed.toMs = requests.at(-1)!.timeMs
    replayed.requests += requests.length
    for (const { decider, tally } of runs) {
      const decisions = await decider.decide(requests)
      requests.forEach((request, i) => {
        tally.add(request, decisions[i]!)
      })
    }
  }

  async function decideReleased(): Promise<void> {
    const requests = buffer.take()
    for (let i = 0; i < requests.length; i += BATCH) await decide(requests.slice(i, i + BATCH))
  }

  let line = 0
  for await (const texts of portions) {
    for (const text of texts) {
      line++
      const parsed = parse(text)
      if ('bad' in parsed) replayed.skipped.add(line, parsed.bad, text)
      else if (!buffer.push({ ...parsed, line })) replayed.skipped.add(line, 'too late', text)
      if (buffer.released >= BATCH) await decideReleased()
    }
  }
  buffer.drain()
  await decideReleased()
  return replayed
}
