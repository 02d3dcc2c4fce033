import { randomUUID } from 'node:crypto'
/** A service that accepts JSON. */
export interface Asked {
  post(path: string, body: unknown, headers?: Record<string, string>): Promise<{ readonly status: number }>
}

/** The maximum number of requests per call. */
const BATCH = 1000

/** Sends one request per key, in this order. */
export async function ask(
  service: Asked,
  limiter: string,
  keys: readonly (string | Record<string, string>)[],
  headers?: Record<string, string>,
): Promise<void> {
  for (let from = 0; from < keys.length; from += BATCH) {
    const named = () => limiter === 'reports' && { requestId: randomUUID() }
    const requests = keys.slice(from, from + BATCH).map((key) => ({ key, ...named() }))
    const { status } = await service.post('/v1/consume', { limiter, requests }, headers)
    if (status !== 200 && status !== 429) throw new Error(`consume responded ${status}`)
  }
}

/** Repeats a round of requests. `await using` ends it. */
export function askOn(round: () => Promise<void>, everyMs = 50): AsyncDisposable {
  let isOver = false
  const going = (async () => {
    while (!isOver) {
      await round()
      await new Promise((resolve) => setTimeout(resolve, everyMs))
    }
  })()
  // The error is thrown on disposal.
  going.catch(() => {})
  return {
    [Symbol.asyncDispose]: async () => {
      isOver = true
      await going
    },
  }
}
