import { AsyncResource } from 'node:async_hooks'
import { StoreUnavailableError } from '../errors.ts'
import type { Call } from '../stores/call.ts'
import type { Store } from '../stores/store.ts'

/**
 * Gives up on a store that has not answered within `timeoutMs`, whatever its client waits for. A reply that
 * comes later is dropped: whether its op was executed is then unknown.
 *
 * One timer watches the oldest call. It belongs to the limiter, never to a request, whose async context it would
 * keep; and it does not keep the process alive.
 */
export function withDeadline(store: Store, timeoutMs: number): Store {
  // All have the same deadline, so they are due in the order in which they came. What is before `oldest` is done.
  let calls: (Call | undefined)[] = []
  let dueAt: number[] = []
  let oldest = 0
  let timer: NodeJS.Timeout | undefined
  const origin = new AsyncResource('slidegate.deadline')
  let tickAt: number | undefined

  function onTimer(): void {
    // One poll phase first: where the event loop was blocked, the reply may already be in the socket.
    setImmediate(giveUpDue, performance.now())
  }

  function giveUpDue(now: number): void {
    for (let i = oldest; i < calls.length && dueAt[i]! <= now; i++) {
      const call = calls[i]!
      if (!call.isSettled) {
        call.reject(new StoreUnavailableError('timeout', `the store did not answer within ${timeoutMs} ms`))
      }
    }
    forgetSettled()
    timer = undefined
    if (oldest < calls.length) watch(Math.ceil(dueAt[oldest]! - now))
  }

  function watch(ms: number): void {
    timer = origin.runInAsyncScope(() => setTimeout(onTimer, ms).unref())
  }

  function forgetSettled(): void {
    while (oldest < calls.length && calls[oldest]!.isSettled) calls[oldest++] = undefined
    if (oldest > 1024 && oldest > calls.length / 2) {
      calls = calls.slice(oldest)
      dueAt = dueAt.slice(oldest)
      oldest = 0
    }
  }

  /** The time, read once for all that is called in the same tick. */
  function now(): number {
    if (tickAt === undefined) {
      tickAt = performance.now()
      queueMicrotask(() => {
        tickAt = undefined
      })
    }
    return tickAt
  }

  return {
    apply(ops, call) {
      store.apply(ops, call)
      // What was answered in this process has no deadline to watch.
      if (call.isSettled) return
      forgetSettled()
      calls.push(call)
      dueAt.push(now() + timeoutMs)
      if (timer === undefined) watch(timeoutMs)
    },
    close() {
      // Calls that still wait keep their deadline.
      forgetSettled()
      if (oldest === calls.length) clearTimeout(timer)
    },
  }
}
