// All requests that are waiting for a limiter in this process, with a queue per key.
import type { Decision } from '../../decision.ts'
import { checkInteger, SlidegateError, WaitError } from '../../errors.ts'
import { StatCounts } from '../../events.ts'
import { AbortListeners } from '../../runtime/abort-listeners.ts'
import { type AsyncOrigin, asyncOrigin } from '../../runtime/platform.ts'
import type { Part } from '../../stores/store.ts'
import { ABORTED, Queue, type Requester, type Room } from './queue.ts'
import { Waiter, type WaitRequest } from './waiter.ts'

/** How many requests are waiting, and how long a new one would wait. */
export interface WaitingState {
  readonly length: number
  /**
   * The estimated wait for a new request, in milliseconds. 0 if no request was denied.
   *
   * The first waiter waits until the store expects room. The waits for those behind it are estimated from the
   * rate of the tightest limit. The estimate ignores waiters in other processes and waits that end early.
   */
  readonly expectedWaitMs: number
}

export class WaitingRoom implements Room {
  readonly requester: Requester
  readonly counts: StatCounts
  readonly origin: AsyncOrigin = asyncOrigin('slidegate.waiting')
  readonly #maxWaiting: number
  /** Maps the joined words of keys (see `wordOf`) to the queue for these keys. Empty queues are removed. */
  readonly #queues = new Map<string, Queue>()
  /** Maps each key's word (see `wordOf`) to that key's queues. With this, a reset needn't visit every queue. */
  readonly #queuesWith = new Map<string, Set<Queue>>()
  readonly #aborts = new AbortListeners<Waiter>((waiters, reason) => this.#abort(waiters, reason))
  #length = 0
  #places = 0
  #isClosed = false

  /** @param maxWaiting from 1 to 2^20; one key gets at most nine tenths of it */
  constructor(requester: Requester, maxWaiting = 10_000, counts: StatCounts = new StatCounts()) {
    checkInteger('maxWaiting', maxWaiting, 1, 2 ** 20)
    this.requester = requester
    this.#maxWaiting = maxWaiting
    this.counts = counts
  }

  /** Resolves on admission. `words` identify the keys; `parts` returns the keys with their current limits. */
  wait(words: readonly string[], parts: () => readonly Part[], request: WaitRequest): Promise<Decision> {
    const key = words.join()
    const { signal } = request
    if (this.#isClosed) return Promise.reject(closed())
    const queue = this.#queues.get(key)
    const refuse = (error: WaitError) => {
      this.counts.waitErrors[error.reason]++
      return Promise.reject(error)
    }
    if (signal?.aborted) {
      return refuse(new WaitError('aborted', ABORTED, undefined, { cause: signal.reason }))
    }
    if (this.#isFullFor(queue?.length ?? 0)) {
      const message = `too many requests are waiting: ${this.#length}`
      return refuse(new WaitError('full', message, queue?.lastDenial))
    }
    const waiter = new Waiter(key, request, parts, this.#places++)
    this.#length++
    if (signal !== undefined) this.#aborts.watch(signal, waiter)
    const joined = queue ?? this.#newQueue(key, words)
    joined.join(waiter)
    return waiter.promise
  }

  /** Wakes the queues for these keys after units were returned or limits changed. */
  wake(words: readonly string[]): void {
    const woken = words.flatMap((word) => Array.from(this.#queuesWith.get(word) ?? []))
    for (const queue of new Set(woken)) queue.wake()
  }

  /** The state of one key, or of all keys together. For all keys, `expectedWaitMs` is the longest wait. */
  state(key?: string): WaitingState {
    if (key !== undefined) {
      const queue = this.#queues.get(key)
      return { length: queue?.length ?? 0, expectedWaitMs: queue?.expectedWaitMs ?? 0 }
    }
    let expectedWaitMs = 0
    for (const queue of this.#queues.values()) expectedWaitMs = Math.max(expectedWaitMs, queue.expectedWaitMs)
    return { length: this.#length, expectedWaitMs }
  }

  close(): void {
    this.#isClosed = true
    for (const queue of this.#queues.values()) queue.close(closed())
  }

  /** Reserves the last tenth of the places for keys with few waiters. Otherwise, one key could take all places. */
  #isFullFor(waiting: number): boolean {
    const reserve = Math.floor(this.#maxWaiting / 10)
    const room = this.#maxWaiting - this.#length
    return room <= 0 || (room <= reserve && waiting >= reserve)
  }

  #newQueue(key: string, words: readonly string[]): Queue {
    const queue = new Queue(key, words, this)
    this.#queues.set(key, queue)
    for (const word of words) this.#queuesWith.set(word, (this.#queuesWith.get(word) ?? new Set()).add(queue))
    return queue
  }

  emptied(queue: Queue): void {
    // The queue may have been emptied and replaced already.
    if (this.#queues.get(queue.key) === queue) this.#queues.delete(queue.key)
    for (const word of queue.words) {
      const sharing = this.#queuesWith.get(word)
      sharing?.delete(queue)
      if (sharing?.size === 0) this.#queuesWith.delete(word)
    }
  }

  gone(waiter: Waiter): void {
    this.#length--
    const { signal } = waiter.request
    if (signal !== undefined) this.#aborts.forget(signal, waiter)
  }

  #abort(waiters: Iterable<Waiter>, reason: unknown): void {
    const queues = new Set<Queue>()
    for (const waiter of waiters) {
      const queue = this.#queues.get(waiter.key)!
      queue.reject(waiter, 'aborted', { cause: reason })
      queues.add(queue)
    }
    // Runs after all of these waiters were rejected, because the next one in line may be among them.
    for (const queue of queues) queue.turn()
  }
}

function closed(): SlidegateError {
  return new SlidegateError('closed', 'the limiter was closed while the request was waiting')
}
