// Runs the requests in a log through limiters, in chronological order.

import type { NeededLimits } from './counts/needed-limits.ts'
import type { Results } from './counts/results.ts'
import type { Decider } from './decider.ts'
import { type LoggedRequest, type ParseLine, Skipped } from './log/parse-line.ts'
import type { ReorderBuffer } from './log/reorder-buffer.ts'

/** A limiter and the counts of its decisions. */
export interface Run {
  readonly decider: Decider
  readonly results: Results
}

export interface Replayed {
  requests: number
  readonly skipped: Skipped
  /** Times of the first and last request. Both are 0 for an empty log. */
  fromMs: number
  toMs: number
}

/** Requests per batch. If --store is set, all requests in a batch are in flight at the same time. */
const BATCH = 1024

/** Runs the requests in a log through each limiter, in chronological order. */
export async function replay(
  portions: AsyncIterable<readonly string[]>,
  parse: ParseLine,
  buffer: ReorderBuffer,
  runs: readonly Run[],
  needed?: NeededLimits,
): Promise<Replayed> {
  const replayed: Replayed = { requests: 0, skipped: new Skipped(), fromMs: 0, toMs: 0 }

  async function decide(requests: readonly LoggedRequest[]): Promise<void> {
    if (replayed.requests === 0) replayed.fromMs = requests[0]!.timeMs
    replayed.toMs = requests.at(-1)!.timeMs
    replayed.requests += requests.length
    for (const { timeMs, key, cost } of requests) needed?.add(key, timeMs, cost)
    for (const { decider, results } of runs) {
      const decisions = await decider.decide(requests)
      requests.forEach((request, i) => {
        results.add(request, decisions[i]!)
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
