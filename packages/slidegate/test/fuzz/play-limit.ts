import { createLimiter, type Decision, type Limit, type Limiter, type Store } from '../../src/index.ts'
import type { ManualClock } from '../../src/testing/index.ts'
import { expectSense } from './sense.ts'

/** Where a limit keeps its entries one by one, more than these take too long. */
const MOST_ENTRIES = 500

/**
 * Plays a limit, whatever it is, to its edge and beyond: what is denied for some time is admitted after it, and not
 * before. Answers all decisions.
 */
export async function playLimit(limit: Limit, store: Store, clock: ManualClock): Promise<Decision[]> {
  const limiter = createLimiter({ limits: [limit], store, timeoutMs: 60_000, logger: false })
  const decisions: Decision[] = []
  const told = (decision: Decision) => {
    expectSense(decision)
    decisions.push(decision)
    return decision
  }
  told(await limiter.consume('k', withValue(limit, 'a', 1)))
  told(await limiter.consume('k', withValue(limit, 'b', limit.limit + 1)))
  if (!limit.shadow) await playToTheEdge(limiter, limit, clock, told)
  told(await limiter.peek('k', withValue(limit, 'c', 1)))
  // More than ever fits.
  if (limit.kind.entries === undefined) {
    await limiter.charge('k', 2 ** 53 - 1)
    told(await limiter.consume('k'))
    told(await limiter.peek('k', { cost: limit.limit }))
  }
  await limiter.reset('k')
  const fresh = told(await limiter.peek('k', withValue(limit, 'c', 1)))
  if (fresh.limits[0]!.remaining !== limit.limit) throw new Error('a reset has left something behind')
  limiter.close()
  return decisions
}

async function playToTheEdge(
  limiter: Limiter,
  limit: Limit,
  clock: ManualClock,
  told: (decision: Decision) => Decision,
): Promise<void> {
  const isOfEntries = limit.kind.entries !== undefined
  const cost = isOfEntries ? Math.min(limit.limit, MOST_ENTRIES) : limit.limit
  const ask = withValue(limit, 'd', cost)
  const denial = told(await limiter.consume('k', ask))
  if (denial.allowed) return
  const { retryAfterMs } = denial
  if (retryAfterMs === Number.POSITIVE_INFINITY) throw new Error('what fits the limit is denied for ever')
  clock.advance(retryAfterMs - 1)
  if (told(await limiter.peek('k', ask)).allowed) throw new Error(`admitted 1 ms before ${retryAfterMs}`)
  clock.advance(1)
  if (!told(await limiter.consume('k', ask)).allowed) throw new Error(`denied after ${retryAfterMs}`)
}

function withValue(limit: Limit, value: string, cost: number) {
  return limit.kind.entries?.are === 'value' ? { value } : { cost }
}
