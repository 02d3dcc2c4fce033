// Waits for calls in flight when a store is closed.

/** How many milliseconds `close` waits for calls in flight. The limiter times out most of them earlier. */
const MAX_CLOSING_MS = 2000

const LOOK_MS = 5

export async function whenIdle(isIdle: () => boolean): Promise<void> {
  const untilMs = performance.now() + MAX_CLOSING_MS
  while (!isIdle() && performance.now() < untilMs) {
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS))
  }
}
