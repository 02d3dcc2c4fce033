import { checkOptions, invalidOption, type Names, show } from '../errors.ts'
import type { Binding } from './binding.ts'
import { createGuard, type Verdict } from './guard.ts'
import { type Carrier, MessageLine } from './message-line.ts'
import { noticeOf } from './notice.ts'
import { GUARD_NAMES, type GuardOptions } from './options.ts'
import { RouteOptions } from './per-route.ts'

// What the adapters of connections on which many messages come share.

const OF_RESPONSES = ['headers', 'refundIf', 'settle', 'onSettleError'] as const

/** The options of `rateLimit` where the messages of a connection are limited: all but those about responses. */
export interface MessageOptions<Message>
  extends Omit<GuardOptions<[message: Message]>, (typeof OF_RESPONSES)[number]> {
  /**
   * Whom the limits count: a key, or an object of keys where the limiter has `dimensions`. Connections of one key share
   * their limits. Default: each connection has limits of its own.
   */
  readonly key?: NonNullable<GuardOptions<[message: Message]>['key']>
  /** Addresses and networks of clients whose connections are closed at once, whatever `allow` and `skip` say. */
  readonly deny?: readonly string[]
  /** Is told of each denied message, in place of telling the client. The next message waits for what it returns. */
  readonly onDenied?: NonNullable<GuardOptions<[message: Message]>['onDenied']>
  /** Messages of a connection that are held at most while one of them waits, from 1 to 2^20. */
  readonly maxPending?: number
}

/** How the guard reaches into a connection, and tells connections apart. */
export interface ConnectionBinding<Connection>
  extends Pick<Binding<[connection: Connection]>, 'peer' | 'header' | 'isCut'> {
  id(connection: Connection): string
}

/** Begins to limit the messages of a connection; undefined where its client is on the list `deny`. */
export type Open<Connection, Message> = (
  connection: Connection,
  carrier: Carrier<Message>,
) => MessageLine<Message> | undefined

/**
 * Messages of connections, by the policy that all adapters share.
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
  const guard = createGuard<[message: Message, line: MessageLine<Message>]>(
    {
      ...rest,
      headers: false,
      key: rest.key ?? binding.id,
      onDenied:
        rest.onDenied ??
        ((decision, message, line) => line.carrier.tell(noticeOf(decision, rest.disclose), message)),
      // Of what is not handled in the end nothing stays charged. What cannot be returned leaves the window in time.
      refundIf: ({ isComplete }) => !isComplete,
      onSettleError: () => {},
    },
    { ...reach, signal: (_, line) => line.wait() },
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
    return denial === undefined ? new MessageLine(guard, carrier) : undefined
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
