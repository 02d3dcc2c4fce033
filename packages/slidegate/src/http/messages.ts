// Limits the messages of connections: their options, and the queue in which each connection's messages are decided.
import { checkOptions, invalidOption, type Names, show } from '../errors.ts'
import { type DenialMessage, denialMessageOf } from './denial-message.ts'
import { type Binding, createGuard, type Guard, type Verdict } from './guard.ts'
import { after, settle } from './maybe-async.ts'
import { type FinishedResponse, GUARD_NAMES, type GuardOptions } from './options.ts'
import { RouteOptions } from './per-route.ts'

const OF_RESPONSES = ['headers', 'refundIf', 'settle', 'onSettleError'] as const

/** The options of `rateLimit` for the messages of a connection: all but those about responses. */
export interface MessageOptions<Message>
  extends Omit<GuardOptions<[message: Message]>, (typeof OF_RESPONSES)[number]> {
  /**
   * The key that is limited, or an object of keys if the limiter has `dimensions`. Connections of one key share their limits.
   * Default: each connection has limits of its own.
   */
  readonly key?: NonNullable<GuardOptions<[message: Message]>['key']>
  /** Addresses and networks of clients whose connections are closed immediately, whatever `allow` and `skip` say. */
  readonly deny?: readonly string[]
  /** Called for each denied message, in place of a message to the client. The next message waits for what it returns. */
  readonly onDenied?: NonNullable<GuardOptions<[message: Message]>['onDenied']>
  /** Messages of a connection that are held while one of them waits, from 1 to 2^20. */
  readonly maxPending?: number
}

/** How the guard reads a connection, and the key of one without `key`. */
export interface ConnectionBinding<Connection>
  extends Pick<Binding<[connection: Connection]>, 'peer' | 'header' | 'isCut'> {
  id(connection: Connection): string
}

/** Begins to limit the messages of a connection; undefined if its client is on the list `deny`. */
export type Open<Connection, Message> = (
  connection: Connection,
  carrier: Carrier<Message>,
) => MessageQueue<Message> | undefined

/**
 * Limits messages of connections, by the guard of all adapters.
 *
 * @throws {SlidegateError} `invalid_option`, and what `createLimiter` refuses
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
      // A message that isn't handled in the end isn't charged. If its charge can't be returned, it expires with the window.
      refundIf: ({ isComplete }) => !isComplete,
      onSettleError: () => {},
    },
    { ...reach, signal: (_, queue) => queue.wait() },
  )
  const { limiter, address } = rest
  const entrance =
    deny === undefined
      ? undefined
      : createGuard<[connection: Connection]>(
          { limiter: limiter!, address, deny, skip: () => true },
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
  for (const name of OF_RESPONSES) {
    const given = (options as GuardOptions<[message: Message]> | undefined)?.[name]
    if (given === undefined) continue
    throw invalidOption(`${name} is given, but messages have no responses; leave it out`, given)
  }
  checkOptions(options, 'rateLimit', NAMES)
  const { maxPending = 1 } = options
  if (!Number.isInteger(maxPending) || (maxPending as number) < 1 || (maxPending as number) > MAX_PENDING) {
    throw invalidOption(
      `maxPending is ${show(maxPending)}; it must be an integer from 1 to ${MAX_PENDING}`,
      maxPending,
    )
  }
}

/** How verdicts on the messages of one connection are carried out. */
export interface Carrier<Message> {
  /** Calls `undo` if the message isn't handled after all. */
  handle(message: Message, undo: () => void): void
  /** The next message waits for what it returns, so a client that doesn't read isn't sent more and more. */
  notify(denial: DenialMessage, message: Message): unknown
  drop(): void
  fail(error: Error, message: Message): void
  /** Called with the number of messages held, and whether one of them waits for room rather than for an answer. */
  pace(held: number, isWaiting: boolean): void
}

/** The messages of one connection, decided one after the other. */
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

  /** Throws what the handler throws. */
  push(message: Message): void {
    if (this.#isClosed) return
    if (!this.#isBusy) {
      this.#take(message)
    } else {
      this.#next.push(message)
      this.#pace()
    }
  }

  /** Handles no more messages, and ends the waits of those that are held: they are never charged. */
  close(): void {
    if (this.#isClosed) return
    this.#next.length = 0
    this.#hangUp.abort()
    this.#pace()
  }

  /** Called for a message that has to wait for room. The signal is aborted when the client hangs up. */
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
    settle(this.#decide, [message], this.#decided, this.#failed)
    if (this.#isBusy) this.#pace()
  }

  readonly #decide = (message: Message) =>
    after(this.#guard(message, this), (verdict) => this.#dealtWith(verdict))

  readonly #decided = ({ denial, over }: Verdict, [message]: readonly [Message]) => {
    this.#goOn()
    if (denial !== undefined) return
    const undo = () => over?.(UNHANDLED)
    if (this.#isClosed) undo()
    else this.carrier.handle(message, undo)
  }

  readonly #failed = (error: Error, [message]: readonly [Message]) => {
    this.#goOn()
    if (!this.#isClosed) this.carrier.fail(error, message)
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
    // After the current message was handled, whatever its handler throws.
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
