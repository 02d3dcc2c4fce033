// Listens to each abort signal once, on behalf of many requests.
/** Uses one listener per signal. Node searches all of a signal's listeners whenever one is added or removed. */
export class AbortListeners<Waiter> {
  readonly #onAbort: (waiters: Iterable<Waiter>, reason: unknown) => void
  readonly #watched = new Map<AbortSignal, { readonly waiters: Set<Waiter>; readonly listener: () => void }>()

  constructor(onAbort: (waiters: Iterable<Waiter>, reason: unknown) => void) {
    this.#onAbort = onAbort
  }

  watch(signal: AbortSignal, waiter: Waiter): void {
    const watched = this.#watched.get(signal)
    if (watched !== undefined) {
      watched.waiters.add(waiter)
      return
    }
    const waiters = new Set([waiter])
    const listener = () => {
      this.#watched.delete(signal)
      this.#onAbort(waiters, signal.reason)
    }
    this.#watched.set(signal, { waiters, listener })
    signal.addEventListener('abort', listener, { once: true })
  }

  forget(signal: AbortSignal, waiter: Waiter): void {
    const watched = this.#watched.get(signal)
    if (watched === undefined) return
    watched.waiters.delete(waiter)
    if (watched.waiters.size > 0) return
    this.#watched.delete(signal)
    signal.removeEventListener('abort', watched.listener)
  }
}
