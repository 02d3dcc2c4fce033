import { createLimiter, memoryStore } from 'slidegate'
import { ManualClock } from 'slidegate/testing'

/**
 * @typedef {import('slidegate').Limit} Limit
 * @typedef {{ atMs: number, value?: string }} Request `atMs`: milliseconds since the start of the picture
 * @typedef {{ atMs: number, allowed: boolean, retryAfterMs?: number, label?: string | undefined }} Answer
 * @typedef {{ atMs: number, used: number }} Level units used from this time on
 */

/** A multiple of all window lengths, so that aligned windows start here. */
export const START_MS = 1_700_000_000_000

export const KEY = 'user:42'

/** Returns `count` times from `fromMs`, `stepMs` apart. */
export function every(
  /** @type {number} */ stepMs,
  /** @type {number} */ fromMs,
  /** @type {number} */ count,
) {
  return Array.from({ length: count }, (_, i) => fromMs + i * stepMs)
}

/**
 * Creates a limiter in memory with a manual clock.
 *
 * @param {Limit | readonly Limit[]} limits
 */
export function limiterOf(limits, startMs = START_MS) {
  const clock = new ManualClock(startMs)
  return {
    clock,
    limiter: createLimiter({ limits: [limits].flat(), store: memoryStore({ clock: clock.now }) }),
  }
}

/** Records changes of the used units. */
export class Levels {
  /** @type {Level[]} */
  all = [{ atMs: 0, used: 0 }]
  #limiter
  #options

  /**
   * @param {import('slidegate').Limiter} limiter
   * @param {import('slidegate').ConsumeOptions} options for a peek
   */
  constructor(limiter, options = {}) {
    this.#limiter = limiter
    this.#options = options
  }

  /** @param {number} atMs time of the limiter's clock */
  async note(atMs) {
    const { limit = 0 } = this.#limiter.limits[0] ?? {}
    const used = limit - (await this.#limiter.peek(KEY, this.#options)).remaining
    if (used !== this.all.at(-1)?.used) this.all.push({ atMs, used })
  }
}

/**
 * Plays requests through limits. Samples the usage of the first limit every `lookMs`.
 *
 * @param {Limit | readonly Limit[]} limits
 * @param {readonly Request[]} requests in order of time
 * @param {number} endMs
 * @returns {Promise<{ answers: readonly Answer[], levels: readonly Level[] }>}
 */
export async function play(limits, requests, endMs, { startMs = START_MS, lookMs = 10 } = {}) {
  const { clock, limiter } = limiterOf(limits, startMs)
  const levels = new Levels(limiter, requests.some(({ value }) => value) ? { value: 'unused' } : {})
  const answers = []
  const instants = new Set([...every(lookMs, 0, endMs / lookMs + 1), ...requests.map(({ atMs }) => atMs)])
  for (const atMs of Array.from(instants).sort((a, b) => a - b)) {
    clock.set(startMs + atMs)
    await levels.note(atMs)
    for (const { value } of requests.filter((request) => request.atMs === atMs)) {
      const { allowed, retryAfterMs } = await limiter.consume(KEY, value === undefined ? {} : { value })
      answers.push({ atMs, allowed, retryAfterMs, label: value })
    }
    await levels.note(atMs)
  }
  return { answers, levels: levels.all }
}

/**
 * Finds the window with the most admitted requests.
 *
 * @param {readonly Answer[]} answers
 * @param {number} windowMs
 */
export function fullest(answers, windowMs) {
  const times = answers.filter(({ allowed }) => allowed).map(({ atMs }) => atMs)
  const counts = times.map((from) => times.filter((at) => at >= from && at < from + windowMs).length)
  const count = Math.max(0, ...counts)
  return { fromMs: times[counts.indexOf(count)] ?? 0, windowMs, count }
}
