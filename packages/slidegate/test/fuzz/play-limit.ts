import { createLimiter, type Decision, type Limit, type Limiter, type Store } from '../../src/index.ts'
import type { ManualClock } from '../../src/testing/index.ts'
import { expectSense } from './sense.ts'

/** The most entries to add to logs that keep individual entries. More would take too long. */
const MOST_ENTRIES = 500

/**
 * Uses up any limit, and exceeds it. Returns all decisions.
 * A request that is denied for some time must be admitted after that time, and not before.
 */
export async function playLimit(limit: Limit, store: Store, clock: ManualClock): Promise<Decision[]> {
  const limiter = createLimiter({ limits: [limit], store, timeoutMs: 60_000, logger: false })
  const decisions: Decision[] = []
  const record = (decision: Decision) => {
    expectSense(decision)
    decisions.push(decision)
    return decision
  }
  record(await limiter.consume('k', named(limit, 'a', 1)))
  record(await limiter.consume('k', named(limit, 'b', limit.limit + 1)))
  if (!limit.shadow) await playToTheEdge(limiter, limit, clock, record)
  record(await limiter.peek('k', withValue(limit, 'c', 1)))
  // Requests more units than ever fit.
  if (limit.kind.entries === undefined) {
    await limiter.charge('k', 2 ** 53 - 1)
    record(await limiter.consume('k'))
    record(await limiter.peek('k', { cost: limit.limit }))
  }
  await limiter.reset('k')
  const fresh = record(await limiter.peek('k', withValue(limit, 'c', 1)))
  if (fresh.limits[0]!.remaining !== limit.limit) throw new Error('a reset left something behind')
  limiter.close()
  return decisions
}

async function playToTheEdge(
  limiter: Limiter,
  limit: Limit,
  clock: ManualClock,
  record: (decision: Decision) => Decision,
): Promise<void> {
  const isOfEntries = limit.kind.entries !== undefined
  const cost = isOfEntries ? Math.min(limit.limit, MOST_ENTRIES) : limit.limit
  const ask = withValue(limit, 'd', cost)
  const request = named(limit, 'd', cost)
  const denial = record(await limiter.consume('k', request))
  if (denial.allowed) return
  const { retryAfterMs } = denial
  if (retryAfterMs === Number.POSITIVE_INFINITY)
    throw new Error('a request within the limit is denied forever')
  clock.advance(retryAfterMs - 1)
  if (record(await limiter.peek('k', ask)).allowed)
    throw new Error(`admitted 1 ms before its wait of ${retryAfterMs} ms`)
  clock.advance(1)
  if (!record(await limiter.consume('k', request)).allowed)
    throw new Error(`denied after its wait of ${retryAfterMs} ms`)
}

function withValue(limit: Limit, value: string, cost: number) {
  return limit.kind.entries?.are === 'value' ? { value } : { cost }
}

/** A slot needs a name. */
function named(limit: Limit, name: string, cost: number) {
  return { ...withValue(limit, name, cost), ...(limit.kind.entries?.are === 'holder' && { requestId: name }) }
}
