// All requests that wait for a limiter in this process, in a queue for each key.
import type { Decision } from '../../decision.ts'
import { invalidOption, SlidegateError, show, WaitError } from '../../errors.ts'
import { WaitCounts } from '../../events.ts'
import { AbortListeners } from '../../runtime/abort-listeners.ts'
import { asyncOrigin } from '../../runtime/platform.ts'
import type { Part } from '../../stores/store.ts'
import { type Asker, Queue, type Surroundings } from './queue.ts'
import { Waiter, type WaitRequest } from './waiter.ts'

/** How many requests wait, and how long a new one would, by estimate. */
export interface WaitingState {
  readonly length: number
  /**
   * Milliseconds. The first waits until the store has said that there is room, those behind it by the rate of the tightest
   * limit. Ignores waiters in other processes and waits that will end early. 0 if no request has been denied.
   */
  readonly expectedWaitMs: number
}

export interface WaitingRoomOptions {
  readonly asker: Asker
  /** The most waiting requests, from 1 to 2^20; of one key nine tenths of it. Default: 10,000. */
  readonly maxWaiting?: number | undefined
  readonly counts?: WaitCounts
}

export class WaitingRoom {
  readonly #maxWaiting: number
  readonly #around: Surroundings
  /** By all words of a request. None is empty. */
  readonly #queues = new Map<string, Queue>()
  /** By each of several words, so that a reset doesn't visit every queue. */
  readonly #queuesWith = new Map<string, Set<Queue>>()
  readonly #aborts = new AbortListeners<Waiter>((waiters, reason) => this.#abort(waiters, reason))
  #length = 0
  #places = 0
  #isClosed = false

  /** @throws {SlidegateError} `invalid_option` */
  constructor({ asker, maxWaiting = 10_000, counts = new WaitCounts() }: WaitingRoomOptions) {
    if (!Number.isSafeInteger(maxWaiting) || maxWaiting < 1 || maxWaiting > 2 ** 20) {
      throw invalidOption(
        `maxWaiting is ${show(maxWaiting)}; it must be an integer from 1 to 2^20`,
        maxWaiting,
      )
    }
    this.#maxWaiting = maxWaiting
    this.#around = {
      asker,
      origin: asyncOrigin('slidegate.waiting'),
      counts,
      gone: (waiter) => this.#gone(waiter),
      emptied: (queue) => this.#emptied(queue),
    }
  }

  /**
   * Resolves when the request is admitted. Rejects with a {@link WaitError}, an error of the store or of `parts`, or a
   * {@link SlidegateError} `closed`.
   *
   * @param words an identifier for each key of the request
   * @param parts its keys, and the limits in force when it is sent
   */
  wait(words: readonly string[], parts: () => readonly Part[], request: WaitRequest): Promise<Decision> {
    const key = words.join()
    const { signal } = request
    if (this.#isClosed) return Promise.reject(closed())
    if (signal?.aborted) {
      this.#around.counts.errors.aborted++
      return Promise.reject(
        new WaitError('aborted', 'the wait was aborted', undefined, { cause: signal.reason }),
      )
    }
    const queue = this.#queues.get(key)
    if (this.#isFullFor(queue?.length ?? 0)) {
      this.#around.counts.errors.full++
      return Promise.reject(
        new WaitError('full', `${this.#length} requests wait already, as many as may`, queue?.lastDenial),
      )
    }
    const waiter = new Waiter(key, request, parts, this.#places++)
    this.#length++
    if (signal !== undefined) this.#aborts.watch(signal, waiter)
    const joined = queue ?? this.#newQueue(key, words)
    joined.join(waiter)
    return waiter.promise
  }

  /** Wakes the queues of these keys: units were returned in this process, or the limits changed. */
  wake(words: readonly string[]): void {
    // A queue that has several of the words is woken once.
    const woken = new Set<Queue>()
    for (const word of words) {
      const alone = this.#queues.get(word)
      if (alone !== undefined) woken.add(alone)
      for (const queue of this.#queuesWith.get(word) ?? []) woken.add(queue)
    }
    for (const queue of woken) queue.wake()
  }

  /** The state of one key, or of all: of these, the longest wait. */
  state(key?: string): WaitingState {
    if (key !== undefined) {
      const queue = this.#queues.get(key)
      return { length: queue?.length ?? 0, expectedWaitMs: queue?.expectedWaitMs ?? 0 }
    }
    let expectedWaitMs = 0
    for (const queue of this.#queues.values()) expectedWaitMs = Math.max(expectedWaitMs, queue.expectedWaitMs)
    return { length: this.#length, expectedWaitMs }
  }

  /** Rejects all waiters with a `SlidegateError` `closed`. */
  close(): void {
    this.#isClosed = true
    for (const queue of this.#queues.values()) queue.close(closed())
  }

  /** The last tenth of the room is for keys with few waiters: no caller takes all of it from others. */
  #isFullFor(waiting: number): boolean {
    const reserve = Math.floor(this.#maxWaiting / 10)
    const room = this.#maxWaiting - this.#length
    return room <= 0 || (room <= reserve && waiting >= reserve)
  }

  #newQueue(key: string, words: readonly string[]): Queue {
    const queue = new Queue(key, words, this.#around)
    this.#queues.set(key, queue)
    for (const word of words.length > 1 ? words : []) {
      const sharing = this.#queuesWith.get(word)
      if (sharing === undefined) this.#queuesWith.set(word, new Set([queue]))
      else sharing.add(queue)
    }
    return queue
  }

  #emptied(queue: Queue): void {
    const { key, words } = queue
    if (this.#queues.get(key) === queue) this.#queues.delete(key)
    for (const word of words) {
      const sharing = this.#queuesWith.get(word)
      sharing?.delete(queue)
      if (sharing?.size === 0) this.#queuesWith.delete(word)
    }
  }

  #abort(waiters: Iterable<Waiter>, reason: unknown): void {
    const queues = new Set<Queue>()
    for (const waiter of waiters) {
      const queue = this.#queues.get(waiter.key)!
      queue.reject(waiter, 'aborted', { cause: reason })
      queues.add(queue)
    }
    // Not before all have left: the next in line may be one of them.
    for (const queue of queues) queue.turn()
  }

  #gone(waiter: Waiter): void {
    this.#length--
    const { signal } = waiter.request
    if (signal !== undefined) this.#aborts.forget(signal, waiter)
  }
}

function closed(): SlidegateError {
  return new SlidegateError('closed', 'the limiter was closed; nobody waits any longer')
}
