import type { Random } from './random.ts'

/** The condition of a server or its connection: shares of affected batches, and latency. */
export interface Weather {
  readonly name: string
  /** Latency in milliseconds, each way. */
  readonly delayMs: readonly [number, number]
  /** The share rejected immediately, without being executed. */
  readonly refused?: number
  /** The share lost before they reach the server. */
  readonly lost?: number
  /** The share executed although their replies are lost. */
  readonly unheard?: number
  /** The share of ops that fail although their batch succeeds. */
  readonly damaged?: number
  readonly isFrozen?: boolean
  /** Whether clients know that they aren't connected. */
  readonly isDisconnected?: boolean
}

export const FINE: Weather = { name: 'fine', delayMs: [0.1, 1] }

const BAD: readonly Weather[] = [
  { name: 'slow', delayMs: [1, 40] },
  { name: 'crawling', delayMs: [20, 400] },
  { name: 'lossy', delayMs: [0.1, 5], lost: 0.3, unheard: 0.3 },
  { name: 'black hole', delayMs: [1, 1], lost: 1 },
  { name: 'mute', delayMs: [0.1, 3], unheard: 1 },
  { name: 'refusing', delayMs: [0.1, 1], refused: 1 },
  { name: 'gone', delayMs: [0.1, 1], refused: 0.7, lost: 0.3, isDisconnected: true },
  { name: 'frozen', delayMs: [0.1, 1], isFrozen: true },
  { name: 'flaky', delayMs: [0.1, 60], refused: 0.2, lost: 0.1, unheard: 0.1, damaged: 0.05 },
]

/** The share of lost calls that fail eventually, when the client detects the loss. */
export const NOTICED: number = 0.5
export const NOTICED_MS: readonly [number, number] = [1, 2000]

export const REFUSALS: readonly string[] = [
  "READONLY You can't write against a read only replica.",
  "OOM command not allowed when used memory > 'maxmemory'.",
  'LOADING Redis is loading the dataset in memory',
  'connect ECONNREFUSED 127.0.0.1:6379',
]

/** How the weather changes. */
export interface Climate {
  readonly kinds: readonly Weather[]
  readonly fineMs: number
  readonly badMs: number
  /** The share of bad spells that affect only one process. */
  readonly local: number
}

export function climateOf(random: Random): Climate {
  const kinds = random.some(BAD, 0.4)
  return {
    kinds: kinds.length > 0 ? kinds : [random.pick(BAD)],
    fineMs: random.pick([30, 200, 600]),
    badMs: random.pick([30, 150, 600]),
    local: random.pick([0, 0, 0.3, 1]),
  }
}
