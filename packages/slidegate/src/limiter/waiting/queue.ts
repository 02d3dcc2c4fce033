import type { Decision } from '../../decision.ts'
import type { WaitErrorReason } from '../../errors.ts'
import type { AsyncOrigin } from '../../runtime/platform.ts'
import type { WaitCounts } from '../../stats.ts'
import type { ConsumeOp, ConsumeOutcome, Part } from '../../stores/store.ts'
import { originOf } from '../origin.ts'
import { Alarm } from './alarm.ts'
import { type Answer, areAlike, areHeld, areJoined, rateOf, waitIn } from './answers.ts'
import { Contention } from './contention.ts'
import { Heap } from './heap.ts'
import { WaitError } from './wait-error.ts'
import { comesBefore, endsBefore, type Waiter } from './waiter.ts'

/** Requests that are asked for together at most. */
const MAX_RUN = 256

/** The next question is asked after this time at most: limits may have been raised elsewhere. */
const MAX_WAIT_MS = 5000

/** For so long at most nobody asks where a release may let the next one in at any time. */
const MAX_HELD_MS = 100

/** Nor for longer than this where others may have been in the way for a moment; for half of it at least, by chance. */
const MAX_JOINED_MS = 1000

/** What was dropped is swept out of the heaps when it is more than what is left, and this. */
const MIN_SWEEP = 64

/** What is asked of a store on behalf of those who wait. */
export interface Question {
  readonly cost: number
  /** Requests of this cost, more than 1 only where they have no names. */
  readonly count: number
}

/** Who asks the store, and makes decisions of what it answers. */
export interface Asker {
  ask(parts: readonly Part[], question: Question): Promise<Answer>
  decide(op: ConsumeOp, outcome: ConsumeOutcome, position: number): Decision
  /** Returns what was charged for a request that nobody waits for any more. */
  giveBack(op: ConsumeOp, outcome: ConsumeOutcome, position: number): void
}

/** What a queue has of the room that it is in. */
export interface Surroundings {
  readonly asker: Asker
  readonly origin: AsyncOrigin
  readonly counts: WaitCounts
  /** It waits no longer. */
  gone(waiter: Waiter): void
  /** Nobody waits for the key any more. */
  emptied(queue: Queue): void
}

/** No room for a request, until it is worth while to ask again. */
interface Denial {
  readonly parts: readonly Part[]
  readonly cost: number
  /** When there is room, as the store has said: by its clock, and by that of this process. */
  readonly openAtMs: number
  readonly roomAtMs: number
  readonly dueAtMs: number
  /** There is certainly no room before. */
  readonly closedUntilMs: number | undefined
}

/**
 * Those who wait for one key in this process. Only the first of them asks, with those behind it that ask for the same,
 * and one question is under way at a time. After a denial the next question follows when the store has said that there
 * would be room, or after 5 s.
 */
export class Queue {
  /** All of its words. */
  readonly key: string
  /** One for each key of its requests. */
  readonly words: readonly string[]
  /** How many wait, and for how many units. */
  length = 0
  units = 0
  readonly #around: Surroundings
  /** Both hold some who wait no longer. Those who are being asked for are not in line. */
  readonly #line = new Heap<Waiter>(comesBefore)
  readonly #ends = new Heap<Waiter>(endsBefore)
  readonly #alarm: Alarm
  readonly #contention = new Contention()
  #isAsking = false
  /** Whether something was returned after the question under way was sent. */
  #isWoken = false
  #denial: Denial | undefined
  #lastDenied: Answer | undefined
  #lastDenial: Decision | undefined
  #parts: readonly Part[] = []

  constructor(key: string, words: readonly string[], around: Surroundings) {
    this.key = key
    this.words = words
    this.#around = around
    this.#alarm = new Alarm(around.origin, () => this.turn())
  }

  join(waiter: Waiter): void {
    this.length++
    this.units += waiter.request.cost
    this.#line.push(waiter)
    this.#ends.push(waiter)
    this.turn()
  }

  /** Asks again at once: there may be more room than the store has said. */
  wake(): void {
    if (this.#isAsking) {
      this.#isWoken = true
      return
    }
    this.#denial = undefined
    this.turn()
  }

  /** Ends a wait; `turn` is called by whoever does so, when all such are ended. */
  reject(waiter: Waiter, reason: WaitErrorReason, options?: ErrorOptions): void {
    this.#drop(waiter)
    this.#around.counts.errors[reason]++
    waiter.reject(new WaitError(reason, messageOf(reason, waiter, this.lastDenial), this.lastDenial, options))
  }

  /** The last that is known. */
  get lastDenial(): Decision | undefined {
    if (this.#lastDenial === undefined && this.#lastDenied !== undefined) {
      const { op, outcome } = this.#lastDenied
      this.#lastDenial = this.#around.asker.decide(op, outcome, outcome.admitted)
    }
    return this.#lastDenial
  }

  /** An estimate for one who would come now: those before are admitted as fast as the tightest limit admits. */
  get expectedWaitMs(): number {
    if (this.length === 0 || this.#denial === undefined) return 0
    const dueInMs = Math.max(0, this.#denial.roomAtMs - performance.now())
    return Math.ceil(dueInMs + this.units / rateOf(this.#parts))
  }

  /** Goes on from however things are: nobody is left, or somebody is to be asked for, or all are to wait. */
  turn(): void {
    while (!this.#isAsking) {
      const first = firstOf(this.#line)
      if (first === undefined) {
        this.#end()
        return
      }
      const denial = this.#denial
      if (denial === undefined || !this.#isInForce(denial, first)) {
        this.#around.origin.runInAsyncScope(() => void this.#ask())
        return
      }
      const closedUntilMs = denial.closedUntilMs ?? performance.now()
      if (first.untilMs <= closedUntilMs) {
        // What holds for it may not hold for those behind it.
        this.reject(first, 'late')
      } else if (!this.#rejectUntil(closedUntilMs)) {
        const endMs = denial.closedUntilMs === undefined ? firstOf(this.#ends)!.untilMs : denial.dueAtMs
        this.#alarm.set(Math.min(endMs, denial.dueAtMs))
        return
      }
    }
  }

  close(error: Error): void {
    for (let waiter = this.#ends.pop(); waiter !== undefined; waiter = this.#ends.pop()) {
      if (waiter.isSettled) continue
      this.#drop(waiter)
      waiter.reject(error)
    }
    this.turn()
  }

  async #ask(): Promise<void> {
    this.#isAsking = true
    const before = this.#denial
    this.#denial = undefined
    this.#alarm.clear()
    // Those who come in the same tick are asked for together. And what fails at once does so in a tick of its own.
    await undefined
    this.#isWoken = false
    let run: readonly Waiter[] = []
    try {
      const first = firstOf(this.#line)
      if (first !== undefined) {
        run = [first]
        this.#parts = first.parts()
        run = this.#takeRun(first)
        const sentAtMs = performance.now()
        const question = { cost: first.request.cost, count: run.length }
        this.#answered(run, await this.#around.asker.ask(this.#parts, question), sentAtMs, before)
      }
    } catch (error) {
      this.#failed(run, error)
    }
    this.#isAsking = false
    this.turn()
  }

  /** The first, and those behind it that can be asked for in the same op. */
  #takeRun(first: Waiter): Waiter[] {
    const most = areJoined(this.#parts) ? MAX_RUN : 1
    const run: Waiter[] = [this.#line.pop()!]
    while (run.length < most) {
      const next = this.#takeAlike(first)
      if (next === undefined) break
      run.push(next)
    }
    return run
  }

  /** The next in line, if it asks for the same, of the same keys and limits. */
  #takeAlike({ request }: Waiter): Waiter | undefined {
    const next = firstOf(this.#line)
    if (next?.request.cost !== request.cost) return undefined
    return this.#isHeldTo(next, this.#parts) ? this.#line.pop() : undefined
  }

  #isHeldTo(waiter: Waiter, parts: readonly Part[]): boolean {
    try {
      return areAlike(waiter.parts(), parts)
    } catch {
      // It is told when its turn comes.
      return false
    }
  }

  #answered(run: readonly Waiter[], answer: Answer, sentAtMs: number, before: Denial | undefined): void {
    const { op, outcome } = answer
    const { asker } = this.#around
    if (outcome.admitted > 0) this.#contention.admitted()
    else if (before !== undefined && op.cost <= before.cost && outcome.atMs >= before.openAtMs) {
      this.#contention.lost()
    }
    const waiting = run.filter(isWaiting)
    for (let position = 0; position < outcome.admitted; position++) {
      // Before anybody is taken out: where it fails, those who were asked for are told so.
      const decision = asker.decide(op, outcome, position)
      // What was charged for one who has gone meanwhile is for the next who asks for the same.
      const waiter = waiting[position] ?? this.#takeAlike(run[0]!)
      if (waiter === undefined) {
        asker.giveBack(op, outcome, position)
      } else {
        const origin = originOf(decision)
        if (origin !== undefined) origin.askedAtMs = sentAtMs
        this.#drop(waiter)
        this.#around.counts.served.observe(performance.now() - waiter.sinceMs)
        waiter.resolve(decision)
      }
    }
    const denied = waiting.slice(outcome.admitted)
    if (outcome.admitted < op.count) this.#denied(denied, answer, sentAtMs)
    for (const waiter of denied) if (isWaiting(waiter)) this.#line.push(waiter)
  }

  #denied(denied: readonly Waiter[], answer: Answer, sentAtMs: number): void {
    const { op, outcome } = answer
    this.#lastDenied = answer
    this.#lastDenial = undefined
    const waitMs = waitIn(answer)
    if (waitMs === Number.POSITIVE_INFINITY) {
      for (const waiter of denied) this.reject(waiter, 'never')
    } else if (!this.#isWoken) {
      const nowMs = performance.now()
      const isHeld = areHeld(op.parts)
      const isOfStore = outcome.source === 'store'
      const isCertain = isOfStore && !(isHeld || outcome.debits !== undefined)
      // The next question takes as long to the store as this one did: from here on it arrives on time, however far the
      // store is.
      const fromMs = isOfStore ? sentAtMs : nowMs
      const mostMs = Math.min(
        isHeld ? MAX_HELD_MS : MAX_WAIT_MS,
        // Who got in each other's way does not come at the same time again.
        outcome.debits !== undefined ? MAX_JOINED_MS * (1 - Math.random() / 2) : Number.POSITIVE_INFINITY,
      )
      this.#denial = {
        parts: this.#parts,
        cost: op.cost,
        openAtMs: outcome.atMs + waitMs,
        roomAtMs: fromMs + waitMs,
        dueAtMs: Math.max(nowMs, fromMs + Math.min(waitMs + this.#contention.delayMs(), mostMs)),
        // The store has decided after it was asked, by a clock of whole milliseconds.
        closedUntilMs: isCertain ? Math.max(nowMs, sentAtMs + waitMs - 1) : undefined,
      }
    }
  }

  #failed(run: readonly Waiter[], error: unknown): void {
    for (const waiter of run) {
      if (waiter.isSettled) continue
      this.#drop(waiter)
      waiter.reject(error)
    }
    this.#rejectUntil(performance.now())
  }

  /** Whether the first is denied as well. What costs less may have room. */
  #isInForce({ parts, cost, dueAtMs }: Denial, waiter: Waiter): boolean {
    const { request } = waiter
    if (performance.now() >= dueAtMs || request.cost < cost) return false
    return this.#isHeldTo(waiter, parts)
  }

  /** Rejects those who do not wait for any longer than until then; whether there were any. */
  #rejectUntil(atMs: number): boolean {
    const before = this.length
    for (let waiter = firstOf(this.#ends); waiter !== undefined; waiter = firstOf(this.#ends)) {
      if (waiter.untilMs > atMs) break
      this.reject(waiter, 'late')
    }
    return this.length < before
  }

  #drop(waiter: Waiter): void {
    waiter.isSettled = true
    this.length--
    this.units -= waiter.request.cost
    for (const heap of [this.#line, this.#ends]) {
      if (heap.size > 2 * this.length + MIN_SWEEP) heap.keep(isWaiting)
    }
    this.#around.gone(waiter)
  }

  #end(): void {
    this.#alarm.clear()
    this.#around.emptied(this)
  }
}

/** The first who still waits. */
function firstOf(heap: Heap<Waiter>): Waiter | undefined {
  while (heap.peek()?.isSettled) heap.pop()
  return heap.peek()
}

function isWaiting(waiter: Waiter): boolean {
  return !waiter.isSettled
}

function messageOf(
  reason: WaitErrorReason,
  { request: { cost, maxWaitMs } }: Waiter,
  denial: Decision | undefined,
): string {
  switch (reason) {
    case 'never':
      return denial?.blockedMs === Number.POSITIVE_INFINITY
        ? 'the key is blocked without an end; unblock it'
        : `a cost of ${cost} is more than a limit of the key ever admits`
    case 'aborted':
      return 'the wait was aborted'
    default:
      return `there is no room for a cost of ${cost} within ${maxWaitMs} ms`
  }
}
