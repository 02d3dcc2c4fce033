import TinyQueue from 'tinyqueue'
import type { Random } from './random.ts'

/** Runs after everything that is due without time passing: promises, microtasks. */
const realImmediate: typeof setImmediate = setImmediate

/** Midnight and ten minutes, so that no window of an hour ends within a run. */
const EPOCH_MS: number = Date.UTC(2030, 0, 1, 0, 10)

/** Node's timers count whole milliseconds, from a time that was read a little before: they come early, too. */
const EARLY_MS = 0.95
const LATE_MS = 0.5

type Task = () => void

interface Due {
  readonly atMs: number
  readonly number: number
  readonly task: Task
}

const byTime = (a: Due, b: Due): number => a.atMs - b.atMs || a.number - b.number

/** As much of a `NodeJS.Timeout` as is used. */
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
 * Time, and the loop of Node over it: timers that are due, then what has arrived, then `setImmediate`. Nothing happens between
 * two events, so time leaps from one to the next. While it is installed, all that runs sees this time.
 */
export class EventLoop {
  /** As by `performance.now()`. */
  nowMs: number
  /** For how long the loop was blocked, all in all. */
  stalledMs = 0
  /** When that last was. */
  stalledAtMs: number = Number.NEGATIVE_INFINITY
  /** For how long by the task that is running. */
  stalledHereMs = 0
  /** When what is arriving was there to be read: before now, where the loop was blocked. */
  arrivedAtMs = 0
  /** When the loop has last come around: what had arrived by then is read before `setImmediate`. */
  roundAtMs = 0
  /** Timers that would have kept the process alive. */
  referenced = 0
  readonly #random: Random
  readonly #timers = new TinyQueue<Timer>([], byTime)
  readonly #arrivals = new TinyQueue<Due>([], byTime)
  #immediates: Task[] = []
  #created: Timer[] = []
  #number = 0
  /** Of timers, by which they are known outside. */
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

  /** Something arrives from outside. */
  after(ms: number, task: Task): void {
    this.#arrivals.push({ atMs: this.nowMs + ms, number: this.#number++, task })
  }

  /** The task that is running blocks the loop. */
  stall(ms: number): void {
    this.nowMs += ms
    this.stalledMs += ms
    this.stalledAtMs = this.nowMs
    this.stalledHereMs += ms
  }

  /** Puts this time in the place of the real one, and answers what puts that back. */
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

  /** Lets so much time pass, or until told to stop. */
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
      // What arrives while these keep the loop busy is read the next time, after the timers.
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
