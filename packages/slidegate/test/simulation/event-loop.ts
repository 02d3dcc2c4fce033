import TinyQueue from 'tinyqueue'
import type { Random } from './random.ts'

/** Runs after all pending promises and microtasks. */
const realImmediate: typeof setImmediate = setImmediate

/** Ten minutes past midnight, so that no window of an hour ends within a run. */
const EPOCH_MS: number = Date.UTC(2030, 0, 1, 0, 10)

/** How early and how late timers fire. Node counts whole milliseconds from an earlier reading of the clock. */
const EARLY_MS = 0.95
const LATE_MS = 0.5

type Task = () => void

interface Due {
  readonly atMs: number
  readonly number: number
  readonly task: Task
}

const byTime = (a: Due, b: Due): number => a.atMs - b.atMs || a.number - b.number

/** The parts of `NodeJS.Timeout` that are used. */
class Timer implements Due {
  readonly atMs: number
  readonly number: number
  readonly task: Task
  isPending = true
  keepsAlive = true

  constructor(atMs: number, number: number, task: Task) {
    this.atMs = atMs
    this.number = number
    this.task = task
  }

  unref(): this {
    this.keepsAlive = false
    return this
  }
}

/**
 * Simulated time with Node's event loop.
 * Due timers run first, then arrivals, then `setImmediate`. Time jumps from one event to the next, since nothing
 * happens in between. While it is installed, all code sees this time.
 */
export class EventLoop {
  /** Milliseconds, like `performance.now()`. */
  nowMs: number
  /** How long the loop has been blocked in total. */
  stalledMs = 0
  /** When the loop was last blocked. */
  stalledAtMs: number = Number.NEGATIVE_INFINITY
  /** How long the current task has blocked the loop. */
  stalledHereMs = 0
  /** When the current arrival could have been read. Earlier than now if the loop was blocked. */
  arrivedAtMs = 0
  /** The start of the current iteration. Earlier arrivals are read before `setImmediate`. */
  roundAtMs = 0
  /** Timers that would have kept the process alive. */
  referenced = 0
  readonly #random: Random
  readonly #timers = new TinyQueue<Timer>([], byTime)
  readonly #arrivals = new TinyQueue<Due>([], byTime)
  #immediates: Task[] = []
  #created: Timer[] = []
  #number = 0
  /** Pending timers. */
  readonly #isPending = new Set<Timer>()

  constructor(random: Random) {
    this.#random = random
    this.nowMs = random.between(10, 100_000)
  }

  /** Milliseconds since the epoch. */
  get wallMs(): number {
    return EPOCH_MS + this.nowMs
  }

  get timers(): number {
    return this.#isPending.size
  }

  /** Schedules an arrival from outside. */
  after(ms: number, task: Task): void {
    this.#arrivals.push({ atMs: this.nowMs + ms, number: this.#number++, task })
  }

  /** Blocks the loop in the current task. */
  stall(ms: number): void {
    this.nowMs += ms
    this.stalledMs += ms
    this.stalledAtMs = this.nowMs
    this.stalledHereMs += ms
  }

  /** Installs the simulated time. Returns a function that restores the real time. */
  install(): Task {
    const real = {
      setTimeout: globalThis.setTimeout,
      clearTimeout: globalThis.clearTimeout,
      setImmediate: globalThis.setImmediate,
      dateNow: Date.now,
      random: Math.random,
      now: performance.now,
    }
    Object.assign(globalThis, {
      setTimeout: (task: (...args: unknown[]) => void, ms = 0, ...args: unknown[]) =>
        this.#setTimeout(() => task(...args), ms),
      clearTimeout: (timer: Timer | undefined) => this.#clear(timer),
      setImmediate: (task: Task) => this.#immediates.push(task),
    })
    Date.now = () => Math.floor(this.wallMs)
    Math.random = () => this.#random.real()
    performance.now = () => this.nowMs
    return () => {
      const { setTimeout, clearTimeout, setImmediate } = real
      Object.assign(globalThis, { setTimeout, clearTimeout, setImmediate })
      Date.now = real.dateNow
      Math.random = real.random
      performance.now = real.now
    }
  }

  /** Lets this much time pass, or stops early when `isOver` returns true. */
  async run(ms: number, isOver: () => boolean = () => false): Promise<void> {
    const endMs = this.nowMs + ms
    await this.#settle()
    while (!isOver()) {
      const nextMs = this.#immediates.length > 0 ? this.nowMs : this.#nextMs()
      if (nextMs > endMs) break
      this.nowMs = Math.max(this.nowMs, nextMs)
      this.roundAtMs = this.nowMs
      for (let timer = this.#nextTimer(); timer !== undefined; timer = this.#nextTimer()) {
        timer.task()
        await this.#settle()
      }
      // Arrivals while these tasks block the loop are read in the next iteration, after the timers.
      const polledMs = this.nowMs
      while ((this.#arrivals.peek()?.atMs ?? Infinity) <= polledMs) {
        const { atMs, task } = this.#arrivals.pop()!
        this.arrivedAtMs = atMs
        task()
        await this.#settle()
      }
      for (const task of this.#immediates.splice(0)) {
        task()
        await this.#settle()
      }
    }
    this.nowMs = Math.max(this.nowMs, endMs)
  }

  #nextMs(): number {
    while (this.#timers.peek()?.isPending === false) this.#timers.pop()
    return Math.min(this.#timers.peek()?.atMs ?? Infinity, this.#arrivals.peek()?.atMs ?? Infinity)
  }

  #nextTimer(): Timer | undefined {
    while (this.#timers.peek()?.isPending === false) this.#timers.pop()
    if ((this.#timers.peek()?.atMs ?? Infinity) > this.nowMs) return undefined
    const timer = this.#timers.pop()!
    this.#clear(timer)
    return timer
  }

  #setTimeout(task: Task, ms: number): Timer {
    const lastsMs = Math.max(1, Math.trunc(ms)) + this.#random.between(-EARLY_MS, LATE_MS)
    const timer = new Timer(this.nowMs + lastsMs, this.#number++, task)
    this.#timers.push(timer)
    this.#isPending.add(timer)
    this.#created.push(timer)
    return timer
  }

  #clear(timer: Timer | undefined): void {
    if (timer === undefined) return
    timer.isPending = false
    this.#isPending.delete(timer)
  }

  async #settle(): Promise<void> {
    await new Promise((resolve) => realImmediate(resolve))
    this.stalledHereMs = 0
    if (this.#created.length === 0) return
    for (const { isPending, keepsAlive } of this.#created) if (isPending && keepsAlive) this.referenced++
    this.#created = []
  }
}
