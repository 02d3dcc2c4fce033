// Limits messages on WebSocket-like connections: the options, and a queue per connection that keeps messages in order.
import { invalidOption, type Names, show } from '../errors.ts'
import { type DenialMessage, denialMessageOf } from './denial-message.ts'
import { type Binding, createGuard, type Guard, type Verdict } from './guard.ts'
import { after, asError, isPending } from './maybe-async.ts'
import { checkRateLimit } from './option-names.ts'
import { type FinishedResponse, GUARD_NAMES, type GuardOptions } from './options.ts'
import { RouteOptions } from './per-route.ts'

/** The options of `rateLimit` for messages: all options that aren't about responses. */
export interface MessageOptions<Message>
  extends Omit<GuardOptions<[message: Message]>, 'headers' | 'refundIf' | 'settle' | 'onSettleError'> {
  /**
   * Returns the key to limit, or an object of keys if the limiter has `dimensions`. Connections with the same key share their
   * limits. Default: a key per connection.
   */
  readonly key?: NonNullable<GuardOptions<[message: Message]>['key']>
  /** Addresses and networks of clients whose connections are closed immediately. Overrides `allow` and `skip`. */
  readonly deny?: readonly string[]
  /**
   * Called for each denied message. Replaces the denial that is sent by default. If it returns a promise, the next
   * message waits for it.
   */
  readonly onDenied?: NonNullable<GuardOptions<[message: Message]>['onDenied']>
  /** Maximum number of messages per connection that can await a decision, from 1 to 2^20. */
  readonly maxPending?: number
}

/** Reads connections for the guard. */
export interface ConnectionBinding<Connection>
  extends Pick<Binding<[connection: Connection]>, 'peer' | 'header' | 'isTruncated'> {
  /** Returns the default key. */
  id(connection: Connection): string
}

/** Starts limiting a connection's messages. Returns `undefined` if its client is in `deny`. */
export type Open<Connection, Message> = (
  connection: Connection,
  carrier: Carrier<Message>,
) => MessageQueue<Message> | undefined

/**
 * Limits messages on connections, with the guard that all adapters share.
 *
 * @throws {SlidegateError} `invalid_option`, or any error from `createLimiter`
 */
export function limitMessages<Connection, Message extends Connection>(
  options: MessageOptions<Message>,
  binding: ConnectionBinding<Connection>,
): Open<Connection, Message> {
  checkMessageOptions(options)
  const { deny, ...rest } = new RouteOptions<[message: Message]>(options).shared!
  const reach = { ...binding, address: binding.peer, canDrop: true }
  const guard = createGuard<[message: Message, queue: MessageQueue<Message>]>(
    {
      ...rest,
      headers: false,
      key: rest.key ?? binding.id,
      onDenied:
        rest.onDenied ??
        ((decision, message, queue) =>
          queue.carrier.notify(denialMessageOf(decision, rest.disclose), message)),
      // Messages that aren't handled are refunded. If the refund fails, the charge expires with the window.
      refundIf: ({ isComplete }) => !isComplete,
      onSettleError: () => {},
    },
    { ...reach, signal: (_, queue) => queue.wait() },
  )
  const { limiter, address, warnings } = rest
  const entrance =
    deny === undefined
      ? undefined
      : createGuard<[connection: Connection]>(
          { limiter: limiter!, address, deny, skip: () => true, warnings },
          { ...reach, signal: () => AbortSignal.abort() },
        )
  return (connection, carrier) => {
    const { denial } = (entrance?.(connection) ?? {}) as Partial<Verdict>
    return denial === undefined ? new MessageQueue(guard, carrier) : undefined
  }
}

const MAX_PENDING = 2 ** 20

const {
  headers: _headers,
  refundIf: _refundIf,
  settle: _settle,
  onSettleError: _onSettleError,
  ...OF_REQUESTS
} = GUARD_NAMES
const NAMES: Names<MessageOptions<unknown>> = { ...OF_REQUESTS, maxPending: true }

function checkMessageOptions<Message>(options: MessageOptions<Message>): void {
  checkRateLimit(options, NAMES)
  const { maxPending = 1 } = options
  if (!Number.isInteger(maxPending) || (maxPending as number) < 1 || (maxPending as number) > MAX_PENDING) {
    throw invalidOption(
      `maxPending is ${show(maxPending)}; it must be an integer from 1 to ${MAX_PENDING}`,
      maxPending,
    )
  }
}

/** Carries out the verdicts for a connection's messages. */
export interface Carrier<Message> {
  /** Handles an admitted message. Calls `undo` if the message isn't handled after all. */
  handle(message: Message, undo: () => void): void
  /** Sends a denial. If it returns a promise, the next message waits for it, so a slow client isn't flooded. */
  notify(denial: DenialMessage, message: Message): unknown
  drop(): void
  fail(error: Error, message: Message): void
  /**
   * Called when the queue changes, with the number of pending messages. `isWaiting` is whether the first message is waiting
   * until its limits allow it, rather than for a decision.
   */
  pace(held: number, isWaiting: boolean): void
}

/** Decides on a connection's messages one by one. */
export class MessageQueue<Message> {
  readonly carrier: Carrier<Message>
  readonly #guard: Guard<[message: Message, queue: MessageQueue<Message>]>
  readonly #hangUp = new AbortController()
  readonly #next: Message[] = []
  #isBusy = false
  #isWaiting = false

  constructor(guard: Guard<[message: Message, queue: MessageQueue<Message>]>, carrier: Carrier<Message>) {
    this.#guard = guard
    this.carrier = carrier
  }

  /** Adds a message. Throws the handler's errors. */
  push(message: Message): void {
    if (this.#isClosed) return
    if (!this.#isBusy) {
      this.#take(message)
    } else {
      this.#next.push(message)
      this.#pace()
    }
  }

  /** Stops the queue. Pending messages are neither handled nor charged. */
  close(): void {
    if (this.#isClosed) return
    this.#next.length = 0
    this.#hangUp.abort()
    this.#pace()
  }

  /** Called when a message must wait until its limits allow it. The signal is aborted when the client disconnects. */
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
    this.#decide(message)
    if (this.#isBusy) this.#pace()
  }

  #decide(message: Message): void {
    let verdict: Verdict | PromiseLike<Verdict>
    try {
      verdict = after(this.#guard(message, this), (verdict) => this.#carryOutDenial(verdict))
    } catch (reason) {
      this.#failed(reason, message)
      return
    }
    if (isPending(verdict)) {
      verdict.then(
        (known) => this.#decided(known, message),
        (reason) => this.#failed(reason, message),
      )
    } else {
      this.#decided(verdict, message)
    }
  }

  #decided({ denial, onFinished }: Verdict, message: Message): void {
    this.#continue()
    if (denial !== undefined) return
    const undo = () => onFinished?.(UNHANDLED)
    if (this.#isClosed) undo()
    else this.carrier.handle(message, undo)
  }

  #failed(reason: unknown, message: Message): void {
    this.#continue()
    if (!this.#isClosed) this.carrier.fail(asError(reason), message)
  }

  /** Carries out a denial, then returns the verdict. */
  #carryOutDenial(verdict: Verdict): Verdict | PromiseLike<Verdict> {
    const { denial } = verdict
    if (denial === undefined || this.#isClosed) return verdict
    if (denial.action === 'custom') return after(denial.answer(), () => verdict)
    this.close()
    this.carrier.drop()
    return verdict
  }

  #continue(): void {
    this.#isWaiting = false
    this.#isBusy = this.#next.length > 0
    // Runs after the current message is handled, even if its handler throws.
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

const UNHANDLED: FinishedResponse = { status: 0, isComplete: false, header: () => undefined }
