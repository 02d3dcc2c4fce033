import { setTimeout as delay } from 'node:timers/promises'

/**
 * Polls until the result is neither `false` nor `undefined`, and returns it.
 * If `question` rejects, it is called again. Throws after `timeoutMs`, with the last error as its cause.
 */
export async function until<T>(
  what: string,
  question: () => Promise<T | false | undefined>,
  timeoutMs = 30_000,
): Promise<T> {
  const startMs = performance.now()
  let lastError: unknown
  while (performance.now() - startMs < timeoutMs) {
    try {
      const answer = await question()
      if (answer !== false && answer !== undefined) return answer
      lastError = undefined
    } catch (error) {
      lastError = error
    }
    await delay(20)
  }
  throw new Error(`Timed out after ${timeoutMs} ms waiting for: ${what}`, { cause: lastError })
}
