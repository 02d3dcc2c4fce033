import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

const TICK_MS = 10

/** A timer as long as the deadline of calls. It shows how much of a delay the machine causes. */
const CONTROL_MS = 50

/** Measures how long this process's event loop hangs, and how late its timers are. */
export class Meter {
  /** The longest time that this process blocked its loop. CPU time used by other processes doesn't count. */
  blockedMs = 0
  /** The longest time that the loop hung for any reason. */
  stoodMs = 0
  /** How late timers of 50 ms were. */
  readonly lateMs: number[] = []
  #lastMs: number = performance.now()
  #lastCpu: NodeJS.CpuUsage = process.cpuUsage()
  readonly #timer: NodeJS.Timeout
  #isStopped = false

  constructor() {
    this.#timer = setInterval(() => this.#tick(), TICK_MS)
    for (let i = 0; i < 4; i++) setTimeout(() => this.#control(), i * (CONTROL_MS / 4))
  }

  #tick(): void {
    const nowMs = performance.now()
    const { user, system } = process.cpuUsage(this.#lastCpu)
    const stoodMs = nowMs - this.#lastMs - TICK_MS
    this.stoodMs = Math.max(this.stoodMs, stoodMs)
    this.blockedMs = Math.max(this.blockedMs, Math.min(stoodMs, (user + system) / 1000))
    this.#lastMs = nowMs
    this.#lastCpu = process.cpuUsage()
  }

  #control(): void {
    if (this.#isStopped) return
    const startMs = performance.now()
    setTimeout(() => {
      if (this.#isStopped) return
      this.lateMs.push(performance.now() - startMs - CONTROL_MS)
      this.#control()
    }, CONTROL_MS)
  }

  stop(): void {
    this.#isStopped = true
    clearInterval(this.#timer)
  }
}

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void

/** Returns bytes in use after garbage collection. */
export function bytesInUse(): number {
  collect()
  const { heapUsed, external } = process.memoryUsage()
  return heapUsed + external
}

/** Returns a percentile, or 0 if there are no values. */
export function percentile(values: readonly number[], percent: number): number {
  const inOrder = [...values].sort((a, b) => a - b)
  return inOrder[Math.ceil((inOrder.length * percent) / 100) - 1] ?? 0
}
