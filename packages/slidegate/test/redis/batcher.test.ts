import { setImmediate } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { asUnavailable } from '../../src/errors.ts'
import { slidingWindow } from '../../src/index.ts'
import { limitSet } from '../../src/limits/limit-set.ts'
import {
  type BatchOptions,
  batchedStore,
  type Receiver,
  type Transport,
} from '../../src/stores/redis/batcher.ts'
import type { Request } from '../../src/stores/redis/encode.ts'
import type { Batch } from '../../src/stores/redis/queue.ts'

const OF_SERVER: BatchOptions = { maxCalls: 16, readsFirst: false }
const OF_BUCKET: BatchOptions = { maxCalls: 4, readsFirst: true }

const set = limitSet('api', [slidingWindow({ limit: 1_000_000, window: '1h' })])

/** Keeps calls until `answer` is called. */
class HeldTransport implements Transport {
  isOrdered = true
  isReady = true
  /** All calls so far. */
  readonly calls: (readonly Request[])[] = []
  readonly #answers: (() => void)[] = []

  lost(): void {}

  readonly failure = asUnavailable

  send(batch: Batch, receiver: Receiver): void {
    this.calls.push(batch.ops)
    const results = batch.ops.map(() => undefined)
    this.#answers.push(() => receiver.answered(batch, results))
  }

  /** The number of requests in each call. */
  get sizes(): number[] {
    return this.calls.map((batch) => batch.length)
  }

  /** Answers the oldest call. */
  async answer(): Promise<void> {
    this.#answers.shift()!()
    await settled()
  }
}

/** Runs all microtasks without a turn of the event loop. */
async function settled(): Promise<void> {
  for (let i = 0; i < 20; i++) await undefined
}

/** Waits for one turn of the event loop. */
async function nextTurn(): Promise<void> {
  await settled()
  await setImmediate()
  await settled()
}

function batcherOf(options: BatchOptions): {
  transport: HeldTransport
  ask: (count: number, again?: boolean) => void
  giveUp: () => void
} {
  const transport = new HeldTransport()
  const store = batchedStore([transport], options, () => 0)
  let keys = 0
  const calls: { isSettled: boolean }[] = []
  const one = (again: boolean): void => {
    const op = {
      type: 'consume',
      parts: [{ key: `k${keys++}`, set }],
      cost: 1,
      count: 1,
      leaseMs: 0,
    } as const
    const call = { isSettled: false, resolve: () => again && one(true), reject() {} }
    calls.push(call)
    store.apply([op], call)
  }
  const ask = (count: number, again = false): void => {
    for (let i = 0; i < count; i++) one(again)
  }
  /** Makes all requests so far time out. */
  const giveUp = (): void => {
    for (const call of calls.splice(0)) call.isSettled = true
  }
  return { transport, ask, giveUp }
}

it('a single request is sent in the same turn', async () => {
  const { transport, ask } = batcherOf(OF_SERVER)
  ask(1)
  await settled()
  expect(transport.sizes).toEqual([1])
})

it('if nothing is in flight, half of the waiting requests are sent immediately and the rest on the next turn', async () => {
  const { transport, ask } = batcherOf(OF_SERVER)
  ask(63)
  await settled()
  expect(transport.sizes).toEqual([32])
  // Requests that arrive before the next turn are sent with the rest.
  ask(2)
  await nextTurn()
  expect(transport.sizes).toEqual([32, 33])
})

it('the halves stay separate: each is sent again as soon as it is answered', async () => {
  const { transport, ask } = batcherOf(OF_SERVER)
  ask(64, true)
  await nextTurn()
  for (let round = 0; round < 5; round++) await transport.answer()
  expect(transport.sizes).toEqual([32, 32, 32, 32, 32, 32, 32])
})

it('halves that are answered together separate again', async () => {
  const { transport, ask } = batcherOf(OF_SERVER)
  ask(64, true)
  await nextTurn()
  await Promise.all([transport.answer(), transport.answer()])
  expect(transport.sizes).toEqual([32, 32, 32])
  await nextTurn()
  expect(transport.sizes).toEqual([32, 32, 32, 32])
})

it.each([
  [7, [7]],
  [8, [4, 4]],
])('%i requests are sent in calls of %j', async (count, sizes) => {
  const { transport, ask } = batcherOf(OF_SERVER)
  ask(count)
  await nextTurn()
  expect(transport.sizes).toEqual(sizes)
})

it('a call takes half of all requests that wait or are in flight', async () => {
  const { transport, ask } = batcherOf(OF_SERVER)
  ask(1)
  await settled()
  ask(20)
  await settled()
  expect(transport.sizes).toEqual([1, 11])
  await transport.answer()
  expect(transport.sizes).toEqual([1, 11, 9])
})

it("full calls don't wait for the next turn", async () => {
  const { transport, ask } = batcherOf(OF_SERVER)
  ask(1024)
  await settled()
  expect(transport.sizes.slice(0, 2)).toEqual([128, 128])
})

it.each([
  [64, [64]],
  [200, [128, 72]],
])('on a Cluster, %i requests are sent in calls of %j', async (count, sizes) => {
  const { transport, ask } = batcherOf(OF_BUCKET)
  ask(count)
  await nextTurn()
  await transport.answer()
  await nextTurn()
  expect(transport.sizes).toEqual(sizes)
})

it('until the script is loaded, all waiting requests are sent in one call', async () => {
  const { transport, ask } = batcherOf(OF_SERVER)
  transport.isOrdered = false
  ask(64)
  await nextTurn()
  expect(transport.sizes).toEqual([64])
})

it('a half that is due before the client is ready waits for it', async () => {
  const { transport, ask } = batcherOf(OF_SERVER)
  ask(64)
  await settled()
  transport.isReady = false
  await nextTurn()
  expect(transport.sizes).toEqual([32])
  transport.isReady = true
  await transport.answer()
  expect(transport.sizes).toEqual([32, 16])
})

it('a server that answers after a silence gets full calls again', async () => {
  const { transport, ask, giveUp } = batcherOf(OF_SERVER)
  for (let lost = 0; lost < OF_SERVER.maxCalls; lost++) {
    ask(1)
    await nextTurn()
    giveUp()
  }
  // While the server is silent, ops are sent one at a time.
  ask(64)
  await nextTurn()
  const sent = OF_SERVER.maxCalls + 1
  expect(transport.sizes).toEqual(Array.from({ length: sent }, () => 1))
  // A late answer counts too.
  await transport.answer()
  await nextTurn()
  expect(transport.sizes.slice(sent)).toEqual([32])
})
