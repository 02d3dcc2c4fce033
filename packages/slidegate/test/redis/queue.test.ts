import { expect, it } from 'vitest'
import { slidingWindow } from '../../src/index.ts'
import { limitSet } from '../../src/limits/limit-set.ts'
import { Backlog, OF_SCRIPT, Queue } from '../../src/stores/redis/queue.ts'
import type { Call, ConsumeOp } from '../../src/stores/store.ts'

const MAX_WAITING = 65_536

/** With this many batchers, a queue has its minimum of 256 slots for keys. */
const BATCHERS = 1_000_000

const set = limitSet('api', [slidingWindow({ limit: 1_000_000, window: '1h' })])

const call: Call = { isSettled: false, resolve() {}, reject() {} }

/** Creates a request. Requests with different costs are separate ops. */
function requestOf(key: string, cost = 1): ConsumeOp {
  return { type: 'consume', parts: [{ key, set }], cost, count: 1, leaseMs: 0 }
}

/** Creates a queue with one waiting request for each of 2,000 keys. There are about eight keys per slot. */
function crowdedQueue(): { backlog: Backlog; queue: Queue } {
  const backlog = new Backlog(BATCHERS, 1)
  const queue = new Queue(backlog)
  for (let i = 0; i < 2000; i++) expect(queue.add(requestOf(`caller ${i}`), undefined, call)).toBe(true)
  return { backlog, queue }
}

/** Fills the queue with requests of one key. Returns how many were accepted. */
function flood(queue: Queue, key: string): number {
  let cost = 1
  while (queue.add(requestOf(key, cost), undefined, call)) cost++
  return cost - 1
}

/** Empties the queue, call by call. */
function drain(queue: Queue): ConsumeOp[][] {
  const calls: ConsumeOp[][] = []
  while (!queue.isEmpty) {
    calls.push(queue.take(OF_SCRIPT.ops, 0).ops.map(({ op }) => op as ConsumeOp))
  }
  return calls
}

it('a key takes at most a quarter of the remaining room, even if it shares a slot', () => {
  const { backlog, queue } = crowdedQueue()
  for (let attacker = 0; attacker < 12; attacker++) {
    const room = MAX_WAITING - backlog.size
    expect(flood(queue, `attacker ${attacker}`)).toBe(Math.ceil(room / 5))
    // The attacker already has its share of the remaining room.
    expect(flood(queue, `attacker ${attacker}`)).toBe(0)
  }
  expect(queue.add(requestOf('newcomer'), undefined, call)).toBe(true)
})

it('a key that floods the queue fills at most half of each call, even if it shares a slot', () => {
  const { queue } = crowdedQueue()
  drain(queue)
  for (let i = 0; i < 300; i++) queue.add(requestOf(`caller ${i}`), undefined, call)
  flood(queue, 'attacker')
  expect(queue.add(requestOf('newcomer'), undefined, call)).toBe(true)
  const [first, second, third, fourth] = drain(queue).map((ops) => ops.map(({ parts }) => parts[0]!.key))
  const early = [first, second, third, fourth].flat()
  expect(early).toContain('newcomer')
  expect(early.filter((key) => key === 'attacker').length).toBeLessThanOrEqual(4 * 64)
})

it('every waiting request leaves once, in order for each key', () => {
  const { backlog, queue } = crowdedQueue()
  const floods = Array.from({ length: 5 }, (_, i) => flood(queue, `attacker ${i}`))
  const left = drain(queue).flat()
  expect(left).toHaveLength(2000 + floods.reduce((sum, count) => sum + count, 0))
  floods.forEach((count, i) => {
    const costs = left.filter(({ parts }) => parts[0]!.key === `attacker ${i}`).map(({ cost }) => cost)
    expect(costs).toEqual(Array.from({ length: count }, (_, cost) => cost + 1))
  })
  expect(backlog.size).toBe(0)
})
