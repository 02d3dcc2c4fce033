import { after, settle } from './at-once.ts'
import type { Answered } from './binding.ts'
import type { Guard, Verdict } from './guard.ts'
import type { Notice } from './notice.ts'

/** How verdicts on the messages of one connection are carried out. */
export interface Carrier<Message> {
  /** `undo` is to be called where the message is not handled after all. */
  handle(message: Message, undo: () => void): void
  /** The next message waits for what it returns, so that a client who does not listen is not told ever more. */
  tell(notice: Notice, message: Message): unknown
  drop(): void
  fail(error: Error, message: Message): void
  /** Is told how many messages are held, and whether one of them waits for room rather than for an answer. */
  pace(held: number, isWaiting: boolean): void
}

/** The messages of one connection, one after the other: the next is asked for when the one before it was dealt with. */
export class MessageLine<Message> {
  readonly carrier: Carrier<Message>
  readonly #guard: Guard<[message: Message, line: MessageLine<Message>]>
  readonly #hangUp = new AbortController()
  readonly #next: Message[] = []
  #isBusy = false
  #isWaiting = false

  constructor(guard: Guard<[message: Message, line: MessageLine<Message>]>, carrier: Carrier<Message>) {
    this.#guard = guard
    this.carrier = carrier
  }

  /** What it throws is thrown by the handler. */
  push(message: Message): void {
    if (this.#isClosed) return
    if (!this.#isBusy) {
      this.#take(message)
    } else {
      this.#next.push(message)
      this.#pace()
    }
  }

  /** Nothing is handled any more: nobody waits any longer, and what is not charged yet never is. */
  close(): void {
    if (this.#isClosed) return
    this.#next.length = 0
    this.#hangUp.abort()
    this.#pace()
  }

  /** Asked for where a message has to wait for room: who waits for as long as that is told when the client hangs up. */
  wait(): AbortSignal {
    this.#isWaiting = true
    this.#pace()
    return this.#hangUp.signal
  }

  get #isClosed(): boolean {
    return this.#hangUp.signal.aborted
  }

  #take(message: Message): void {
    this.#isBusy = true
    settle(
      () => after(this.#guard(message, this), (verdict) => this.#dealtWith(verdict)),
      ({ denial, over }) => {
        this.#goOn()
        if (denial !== undefined) return
        const undo = () => over?.(UNHANDLED)
        if (this.#isClosed) undo()
        else this.carrier.handle(message, undo)
      },
      (error) => {
        this.#goOn()
        if (!this.#isClosed) this.carrier.fail(error, message)
      },
    )
    if (this.#isBusy) this.#pace()
  }

  /** The verdict, when a denial has been carried out. */
  #dealtWith(verdict: Verdict): Verdict | PromiseLike<Verdict> {
    const { denial } = verdict
    if (denial === undefined || this.#isClosed) return verdict
    if (denial.action === 'custom') return after(denial.answer(), () => verdict)
    this.close()
    this.carrier.drop()
    return verdict
  }

  #goOn(): void {
    this.#isWaiting = false
    this.#isBusy = this.#next.length > 0
    // Not before the message at hand was handled, whatever its handler throws.
    if (this.#isBusy) queueMicrotask(() => this.#takeNext())
    this.#pace()
  }

  #takeNext(): void {
    const message = this.#next.shift()
    if (message === undefined) this.#isBusy = false
    else this.#take(message)
  }

  #pace(): void {
    const isHeld = this.#isBusy && !this.#isClosed
    this.carrier.pace(isHeld ? 1 + this.#next.length : 0, this.#isWaiting)
  }
}

const UNHANDLED: Answered = { status: 0, isComplete: false, header: () => undefined }
