import TinyQueue from 'tinyqueue'
import { expect, it } from 'vitest'
import { failurePolicy, memoryStore, slidingWindow } from '../../src/index.ts'
import { limitSet } from '../../src/limits/limit-set.ts'
import { acrossShards } from '../../src/resilience/cluster/across-shards.ts'
import { outcomesOf } from '../../src/stores/call.ts'
import type { ConsumeOp, ConsumeOutcome, Part, Store } from '../../src/stores/store.ts'
import { ManualClock } from '../../src/testing/index.ts'
import { Random } from '../simulation/random.ts'

// A request denied by its `user` key holds units of the `shared` key for a round trip. These tests measure how many
// other requests that denies. Time is simulated: two servers, each `delayMs` away from two processes.

const START_MS = 1_900_000_000_000
const RUN_MS = 10_000

const sharedPart: Part = {
  key: 'shared',
  set: limitSet('api/shared', [slidingWindow({ limit: 1000, window: '1s' })]),
}
const greedy: Part = {
  key: 'greedy',
  set: limitSet('api/user', [slidingWindow({ limit: 100, window: '1s' })]),
}
const other: Part = {
  key: 'other',
  set: limitSet('api/user', [slidingWindow({ limit: 60_000, window: '1s' })]),
}

interface Request {
  readonly op: ConsumeOp
  readonly atMs: number
  isAdmitted: boolean
}

interface Event {
  readonly atMs: number
  readonly number: number
  readonly happen: () => void
}

/** Simulates one caller with 1,000 requests per second, and other callers with 800. */
async function requestsOf(delayMs: number, cost: number): Promise<{ requests: Request[]; returns: number }> {
  const events = new TinyQueue<Event>([], (a, b) => a.atMs - b.atMs || a.number - b.number)
  const clock = new ManualClock(START_MS)
  const memory = memoryStore({ clock: clock.now })
  const random = new Random(1)
  const requests: Request[] = []
  let [nowMs, number, returns] = [0, 0, 0]
  const after = (ms: number, happen: () => void) =>
    events.push({ atMs: nowMs + ms, number: number++, happen })
  const far: Store = {
    failurePolicy,
    apply(ops, call) {
      if (ops[0]!.type === 'refund') returns++
      after(delayMs, () => {
        memory.apply(ops, {
          isSettled: false,
          resolve: (outcomes, position) => after(delayMs, () => call.resolve(outcomes, position)),
          reject: (error) => call.reject(error),
        })
      })
    },
    close() {},
  }
  const flow = (user: Part, cost: number, perSecond: number) => {
    const store = acrossShards(far, ({ parts }) => (parts[0]!.key === 'shared' ? 0 : 1))
    const ask = () => {
      const op: ConsumeOp = { type: 'consume', parts: [user, sharedPart], cost, count: 1, leaseMs: 0 }
      const request = { op, atMs: nowMs, isAdmitted: false }
      requests.push(request)
      outcomesOf(store, [op]).then(([outcome]) => {
        request.isAdmitted = (outcome as ConsumeOutcome).admitted > 0
      })
      askLater()
    }
    const askLater = () => {
      const waitMs = random.exponential(1000 / perSecond)
      if (nowMs + waitMs < RUN_MS) after(waitMs, ask)
    }
    askLater()
  }
  flow(greedy, cost, 1000)
  flow(other, 1, 800)
  for (let event = events.pop(); event !== undefined; event = events.pop()) {
    nowMs = event.atMs
    clock.set(START_MS + Math.floor(nowMs))
    event.happen()
    // Charges are returned in a microtask.
    await undefined
  }
  return { requests, returns }
}

/** Returns the share of other callers' requests that were denied needlessly. One server would have admitted them. */
async function needlessDenials(delayMs: number, cost = 1): Promise<number> {
  const { requests, returns } = await requestsOf(delayMs, cost)
  const clock = new ManualClock(START_MS)
  const single = memoryStore({ clock: clock.now })
  let [total, needless, denied] = [0, 0, 0]
  for (const { op, atMs, isAdmitted } of requests) {
    clock.set(START_MS + Math.floor(atMs + delayMs))
    const [outcome] = single.applySync([op])
    if (op.parts[0] === greedy) {
      if (!isAdmitted) denied++
      continue
    }
    total++
    if ((outcome as ConsumeOutcome).admitted > 0 && !isAdmitted) needless++
  }
  expect(total).toBeGreaterThan(7000)
  expect(denied).toBeGreaterThan(8500)
  expect(returns).toBeGreaterThan(1000)
  return needless / total
}

it.each([0.1, 1])(
  'a caller who makes 1,000 requests a second over their own limit denies less than 1% of other requests, %d ms away',
  async (delayMs) => {
    expect(await needlessDenials(delayMs)).toBeLessThan(0.01)
  },
)

it('a denied request with a cost of 100 holds 100 units for a round trip, which denies more than 1% of other requests', async () => {
  expect(await needlessDenials(1, 10)).toBeLessThan(0.01)
  expect(await needlessDenials(1, 100)).toBeGreaterThan(0.01)
})
