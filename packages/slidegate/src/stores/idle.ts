// Waits for the calls under way when a store is closed.

/** Milliseconds that `close` of a store waits for calls under way. Limiters give most of them up before. */
const MAX_CLOSING_MS = 2000

const LOOK_MS = 5

export async function whenIdle(isIdle: () => boolean): Promise<void> {
  const untilMs = performance.now() + MAX_CLOSING_MS
  while (!isIdle() && performance.now() < untilMs) {
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS))
  }
}
