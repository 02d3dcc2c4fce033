import { PerformanceObserver } from 'node:perf_hooks'

/** Shorter ones are not told. */
const TOLD_MS = 5

/** Decisions between two looks at how long this process was at work. */
const LOOK_EVERY = 256

/** How many lasted for longer than so many milliseconds, and the longest of them. */
export interface Spread {
  readonly over10: number
  readonly over25: number
  readonly over50: number
  readonly longestMs: number
}

export function spreadOf(pausesMs: readonly number[]): Spread {
  const over = (ms: number) => pausesMs.filter((each) => each > ms).length
  const longestMs = pausesMs.reduce((longest, each) => Math.max(longest, each), 0)
  return { over10: over(10), over25: over(25), over50: over(50), longestMs: Number(longestMs.toFixed(2)) }
}

/** Watches how long single decisions take. */
export class Pauses {
  /** By the clock on the wall: what others took of the machine is in it. */
  readonly wallMs: number[] = []
  /** Of these, for how long at most this process was at work, in all of its threads. */
  readonly ownMs: number[] = []
  #cpu: NodeJS.CpuUsage = process.cpuUsage()
  #lastMs: number = performance.now()
  #looks = 0

  /** Begins anew, after something that is not to be watched. */
  begin(): void {
    this.#cpu = process.cpuUsage()
    this.#lastMs = performance.now()
  }

  /** After each decision. */
  look(): void {
    const nowMs = performance.now()
    const tookMs = nowMs - this.#lastMs
    if (tookMs > TOLD_MS) {
      const { user, system } = process.cpuUsage(this.#cpu)
      this.wallMs.push(tookMs)
      this.ownMs.push(Math.min(tookMs, (user + system) / 1000))
      this.begin()
    } else {
      this.#lastMs = nowMs
      if (++this.#looks % LOOK_EVERY === 0) this.begin()
    }
  }
}

/** Watches how long collections of garbage take, by the clock on the wall. */
export class Collections {
  readonly tookMs: number[] = []
  readonly #observer = new PerformanceObserver((list) => {
    for (const { duration } of list.getEntries()) this.tookMs.push(duration)
  })

  constructor() {
    this.#observer.observe({ entryTypes: ['gc'] })
  }

  stop(): void {
    this.#observer.disconnect()
  }
}
