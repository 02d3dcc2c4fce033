import { setTimeout as delay } from 'node:timers/promises'

/**
 * Asks every few milliseconds until the answer is anything but `false` or `undefined`, which it returns. A failed
 * question is asked again.
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
  throw new Error(`waited ${timeoutMs} ms in vain for: ${what}`, { cause: lastError })
}
