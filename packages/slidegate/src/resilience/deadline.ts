import { StoreUnavailableError } from '../errors.ts'
import { Call } from '../stores/call.ts'
import type { Op, Store } from '../stores/store.ts'

/** In a list in the order in which they came, which is that in which they are due. */
class TimedCall extends Call {
  readonly dueAt: number
  next: TimedCall | undefined

  constructor(dueAt: number) {
    super()
    this.dueAt = dueAt
  }
}

/**
 * Gives up on a store that has not answered within `timeoutMs`, whatever its client waits for. A reply that
 * comes later is dropped: whether its op was executed is then unknown.
 *
 * One timer watches the oldest call. It is made here or by its predecessor, never inside a request, whose
 * async context it would keep; and it does not keep the process alive.
 */
export function withDeadline(store: Store, timeoutMs: number): Store {
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
    for (let call = oldest; call !== undefined && call.dueAt <= now; call = call.next) {
      if (call.isSettled) continue
      call.reject(new StoreUnavailableError('timeout', `the store did not answer within ${timeoutMs} ms`))
    }
    forgetSettled()
    isWatching = oldest !== undefined
    if (oldest !== undefined) timer = setTimeout(onTimer, Math.ceil(oldest.dueAt - now)).unref()
  }

  function forgetSettled(): void {
    while (oldest?.isSettled) {
      const { next } = oldest
      // Cut off: else one that the garbage collector holds to be old keeps all that came after it.
      oldest.next = undefined
      oldest = next
    }
    if (oldest === undefined) newest = undefined
  }

  function watch(call: TimedCall): void {
    forgetSettled()
    if (newest === undefined) oldest = call
    else newest.next = call
    newest = call
    if (!isWatching) timer.refresh()
    isWatching = true
  }

  return {
    apply(ops: readonly Op[]) {
      const call = new TimedCall(performance.now() + timeoutMs)
      watch(call)
      const outcomes = store.apply(ops, call)
      if (outcomes !== call.outcomes) {
        outcomes.then(
          (all) => call.resolve(all),
          (error) => call.reject(error),
        )
      }
      return call.outcomes
    },
    close() {
      // Calls that still wait keep their deadline.
      forgetSettled()
      if (oldest === undefined) clearTimeout(timer)
    },
  }
}
