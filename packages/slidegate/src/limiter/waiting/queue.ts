// The queue of requests that are waiting for one key in this process.
import type { Decision } from '../../decision.ts'
import { WaitError, type WaitErrorReason } from '../../errors.ts'
import type { StatCounts } from '../../events.ts'
import type { AsyncOrigin } from '../../runtime/platform.ts'
import type { ConsumeOp, ConsumeOutcome, Part } from '../../stores/store.ts'
import { chargeOf } from '../refund.ts'
import { areKept } from '../request.ts'
import { Alarm } from './alarm.ts'
import { type Answer, Contention, type Denial, denialOf, rateOf, waitIn } from './denial.ts'
import { comesBefore, endsBefore, Heap, type Waiter } from './waiter.ts'

const MAX_RUN = 256

export const ABORTED = 'the wait was aborted'

/** A heap is swept if its settled waiters outnumber the others by more than this. */
const MIN_SWEEP = 64

export interface Requester {
  /** @param count number of requests with this cost; 1 if a log stores each request separately */
  ask(parts: readonly Part[], cost: number, count: number): Promise<Answer>
  decide(op: ConsumeOp, outcome: ConsumeOutcome, position: number): Decision
  giveBack(decision: Decision): void
}

export interface Room {
  readonly requester: Requester
  readonly origin: AsyncOrigin
  readonly counts: Pick<StatCounts, 'waits' | 'waitErrors'>
  gone(waiter: Waiter): void
  emptied(queue: Queue): void
}

/** Sends the first requests in line, one op at a time. After a denial, waits until there should be room. */
export class Queue {
  readonly key: string
  /** A string for each key of the queue's requests: see `wordOf`. */
  readonly words: readonly string[]
  length = 0
  units = 0
  lastDenial: Decision | undefined
  readonly #room: Room
  /** Both heaps may contain settled waiters. A waiter whose request is in flight is only in `#ends`. */
  readonly #line = new Heap<Waiter>(comesBefore)
  readonly #ends = new Heap<Waiter>(endsBefore)
  readonly #alarm: Alarm
  readonly #contention = new Contention()
  #isAsking = false
  /** Whether `wake` was called while the current op was in flight. */
  #isWoken = false
  #denial: Denial | undefined

  constructor(key: string, words: readonly string[], room: Room) {
    this.key = key
    this.words = words
    this.#room = room
    this.#alarm = new Alarm(room.origin, () => this.turn())
  }

  join(waiter: Waiter): void {
    this.length++
    this.units += waiter.request.cost
    this.#line.push(waiter)
    this.#ends.push(waiter)
    this.turn()
  }

  /** Sends again immediately, because there may be room sooner than the store announced. */
  wake(): void {
    if (this.#isAsking) {
      this.#isWoken = true
      return
    }
    this.#denial = undefined
    this.turn()
  }

  /** Ends a wait. Call `turn` after the last rejection. */
  reject(waiter: Waiter, reason: WaitErrorReason, options?: ErrorOptions): void {
    const { lastDenial } = this
    this.#room.counts.waitErrors[reason]++
    this.#fail(waiter, new WaitError(reason, messageOf(reason, waiter, lastDenial), lastDenial, options))
  }

  get expectedWaitMs(): number {
    if (this.length === 0 || this.#denial === undefined) return 0
    const dueInMs = Math.max(0, this.#denial.roomAtMs - performance.now())
    return Math.ceil(dueInMs + this.units / rateOf(this.#denial.parts))
  }

  /** Takes the next step: ends the queue, sends its first request, or sets the alarm. */
  turn(): void {
    while (!this.#isAsking) {
      const first = firstOf(this.#line)
      if (first === undefined) {
        this.#alarm.clear()
        this.#room.emptied(this)
        return
      }
      const denial = this.#denial
      if (denial === undefined || !isInForce(denial, first)) {
        this.#room.origin.runInAsyncScope(() => void this.#ask())
        return
      }
      const closedUntilMs = denial.closedUntilMs ?? performance.now()
      if (first.untilMs <= closedUntilMs) {
        // There can't be room before this waiter's deadline. The waiters behind it may have later deadlines.
        this.reject(first, 'timeout')
      } else if (!this.#rejectUntil(closedUntilMs)) {
        const endMs = denial.closedUntilMs === undefined ? firstOf(this.#ends)!.untilMs : denial.dueAtMs
        this.#alarm.set(Math.min(endMs, denial.dueAtMs))
        return
      }
    }
  }

  close(error: Error): void {
    for (let waiter = firstOf(this.#ends); waiter !== undefined; waiter = firstOf(this.#ends)) {
      this.#fail(waiter, error)
    }
    this.turn()
  }

  async #ask(): Promise<void> {
    this.#isAsking = true
    const before = this.#denial
    this.#denial = undefined
    this.#alarm.clear()
    // Batches the requests made in this tick, and defers failures to a later tick.
    await undefined
    this.#isWoken = false
    let run: readonly Waiter[] = []
    try {
      const first = firstOf(this.#line)
      if (first !== undefined) {
        run = [first]
        const parts = first.parts()
        run = this.#takeRun(first, parts)
        const sentAtMs = performance.now()
        const answer = await this.#room.requester.ask(parts, first.request.cost, run.length)
        this.#answered(run, answer, sentAtMs, before)
      }
    } catch (error) {
      for (const waiter of run) if (isWaiting(waiter)) this.#fail(waiter, error)
      this.#rejectUntil(performance.now())
    }
    this.#isAsking = false
    this.turn()
  }

  /** Takes the first waiter, and the waiters behind it that fit in the same op. */
  #takeRun(first: Waiter, parts: readonly Part[]): Waiter[] {
    // Logs that keep entries need a separate name, and so a separate op, for each request.
    const most = areKept(parts) ? 1 : MAX_RUN
    const run: Waiter[] = [this.#line.pop()!]
    while (run.length < most) {
      const next = this.#takeAlike(first, parts)
      if (next === undefined) break
      run.push(next)
    }
    return run
  }

  #takeAlike({ request }: Waiter, parts: readonly Part[]): Waiter | undefined {
    const next = firstOf(this.#line)
    if (next?.request.cost !== request.cost) return undefined
    return isHeldTo(next, parts) ? this.#line.pop() : undefined
  }

  #answered(run: readonly Waiter[], answer: Answer, sentAtMs: number, before: Denial | undefined): void {
    const { op, outcome } = answer
    const { requester } = this.#room
    if (outcome.admitted > 0) this.#contention.admitted()
    else if (before !== undefined && op.cost <= before.cost && outcome.atMs >= before.openAtMs) {
      this.#contention.lost()
    }
    const waiting = run.filter(isWaiting)
    for (let position = 0; position < outcome.admitted; position++) {
      // Runs before a waiter is removed: if this throws, the whole run is rejected.
      const decision = requester.decide(op, outcome, position)
      // If a waiter has left, its charge goes to the next waiter with the same cost and limits.
      const waiter = waiting[position] ?? this.#takeAlike(run[0]!, op.parts)
      if (waiter === undefined) {
        requester.giveBack(decision)
      } else {
        const charge = chargeOf(decision)
        if (charge !== undefined) charge.askedAtMs = sentAtMs
        this.#drop(waiter)
        this.#room.counts.waits.observe(performance.now() - waiter.sinceMs)
        waiter.resolve(decision)
      }
    }
    const denied = waiting.slice(outcome.admitted)
    if (outcome.admitted < op.count) this.#denied(denied, answer, sentAtMs)
    for (const waiter of denied) if (isWaiting(waiter)) this.#line.push(waiter)
  }

  #denied(denied: readonly Waiter[], answer: Answer, sentAtMs: number): void {
    const { op, outcome } = answer
    this.lastDenial = this.#room.requester.decide(op, outcome, outcome.admitted)
    const waitMs = waitIn(answer)
    if (waitMs === Number.POSITIVE_INFINITY) {
      for (const waiter of denied) this.reject(waiter, 'impossible')
    } else if (!this.#isWoken) {
      this.#denial = denialOf(answer, sentAtMs, waitMs, this.#contention)
    }
  }

  #rejectUntil(atMs: number): boolean {
    const before = this.length
    for (let waiter = firstOf(this.#ends); waiter !== undefined; waiter = firstOf(this.#ends)) {
      if (waiter.untilMs > atMs) break
      this.reject(waiter, 'timeout')
    }
    return this.length < before
  }

  #fail(waiter: Waiter, error: unknown): void {
    this.#drop(waiter)
    waiter.reject(error)
  }

  #drop(waiter: Waiter): void {
    waiter.isSettled = true
    this.length--
    this.units -= waiter.request.cost
    for (const heap of [this.#line, this.#ends]) {
      if (heap.size > 2 * this.length + MIN_SWEEP) heap.keep(isWaiting)
    }
    this.#room.gone(waiter)
  }
}

function firstOf(heap: Heap<Waiter>): Waiter | undefined {
  while (heap.peek()?.isSettled) heap.pop()
  return heap.peek()
}

function isWaiting(waiter: Waiter): boolean {
  return !waiter.isSettled
}

/** Whether the denial applies to this waiter, too. There may be room for a waiter with a lower cost. */
function isInForce({ parts, cost, dueAtMs }: Denial, waiter: Waiter): boolean {
  if (performance.now() >= dueAtMs || waiter.request.cost < cost) return false
  return isHeldTo(waiter, parts)
}

function isHeldTo(waiter: Waiter, parts: readonly Part[]): boolean {
  try {
    const own = waiter.parts()
    return (
      own.length === parts.length &&
      own.every(({ key, set }, i) => key === parts[i]!.key && set === parts[i]!.set)
    )
  } catch {
    // The waiter is rejected when its turn comes.
    return false
  }
}

function messageOf(reason: WaitErrorReason, { request }: Waiter, denial: Decision | undefined): string {
  if (reason === 'aborted') return ABORTED
  if (reason === 'timeout') {
    return `there is no room for a cost of ${request.cost} within ${request.maxWaitMs} ms`
  }
  return denial?.blockedMs === Number.POSITIVE_INFINITY
    ? 'the key is blocked indefinitely; unblock it'
    : `a cost of ${request.cost} exceeds a limit on the key`
}
