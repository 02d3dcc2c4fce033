import { StoreUnavailableError } from '../errors.ts'
import type { Call, Op, Outcome, Store } from '../stores/store.ts'

interface TimedCall extends Call {
  readonly dueAt: number
  readonly giveUp: () => void
  isSettled: boolean
  next: TimedCall | undefined
}

/**
 * Gives up on a store that has not answered within `timeoutMs`, whatever its client waits for. A reply that
 * comes later is dropped: whether its op was executed is then unknown.
 *
 * One timer watches the oldest call. It is made here or by its predecessor, never inside a request, whose
 * async context it would keep; and it does not keep the process alive.
 */
export function withDeadline(store: Store, timeoutMs: number): Store {
  // All calls have the same deadline: they are due in the order in which they came.
  let oldest: TimedCall | undefined
  let newest: TimedCall | undefined
  let isWatching = true
  let timer = setTimeout(onTimer, timeoutMs).unref()

  function onTimer(): void {
    // One poll phase first: where the event loop was blocked, the reply may already be in the socket.
    setImmediate(giveUpDue)
  }

  function giveUpDue(): void {
    const now = performance.now()
    while (oldest !== undefined && (oldest.isSettled || oldest.dueAt <= now)) {
      if (!oldest.isSettled) oldest.giveUp()
      oldest = oldest.next
    }
    isWatching = oldest !== undefined
    if (oldest !== undefined) timer = setTimeout(onTimer, Math.ceil(oldest.dueAt - now)).unref()
  }

  function watch(call: TimedCall): void {
    while (oldest?.isSettled) oldest = oldest.next
    if (oldest === undefined || newest === undefined) oldest = call
    else newest.next = call
    newest = call
    if (!isWatching) timer.refresh()
    isWatching = true
  }

  return {
    apply: (ops: readonly Op[]) =>
      new Promise<readonly Outcome[]>((resolve, reject) => {
        const call: TimedCall = {
          dueAt: performance.now() + timeoutMs,
          giveUp() {
            call.isSettled = true
            reject(new StoreUnavailableError('timeout', `the store did not answer within ${timeoutMs} ms`))
          },
          isSettled: false,
          next: undefined,
        }
        watch(call)
        store.apply(ops, call).then(
          (outcomes) => {
            call.isSettled = true
            resolve(outcomes)
          },
          (error) => {
            call.isSettled = true
            reject(error)
          },
        )
      }),
    close() {
      // Calls that still wait keep their deadline.
      while (oldest?.isSettled) oldest = oldest.next
      if (oldest === undefined) clearTimeout(timer)
    },
  }
}
