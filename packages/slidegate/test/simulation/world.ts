import { EventLoop } from './event-loop.ts'
import { Random } from './random.ts'
import { type Execution, Server } from './server.ts'

/** What all of a run share: chance, time, the servers, and what is noted. */
export class World {
  readonly random: Random
  readonly loop: EventLoop
  readonly servers: readonly Server[]
  /** What was found to be wrong, the first few. */
  readonly violations: string[] = []
  readonly lines: string[] = []
  /** How often things have happened. */
  readonly counts = new Map<string, number>()
  readonly #isTraced: boolean
  readonly #startMs: number

  constructor(seed: number, isTraced: boolean) {
    this.random = new Random(seed)
    this.#isTraced = isTraced
    this.loop = new EventLoop(this.random)
    this.#startMs = this.loop.nowMs
    this.servers = Array.from({ length: this.random.pick([1, 1, 2]) }, () => new Server(this.loop))
  }

  /** Milliseconds since the run has begun. */
  get atMs(): number {
    return this.loop.nowMs - this.#startMs
  }

  shardOf(key: string): number {
    return key.charCodeAt(key.length - 1) % this.servers.length
  }

  serverOf(key: string): Server {
    return this.servers[this.shardOf(key)]!
  }

  *executions(): Generator<Execution> {
    for (const { executions } of this.servers) yield* executions
  }

  count(what: string): void {
    this.counts.set(what, (this.counts.get(what) ?? 0) + 1)
  }

  trace(line: () => string): void {
    if (this.#isTraced) this.lines.push(`${this.atMs.toFixed(3).padStart(9)} ${line()}`)
  }

  expect(holds: boolean, otherwise: () => string): void {
    if (!holds) this.violate(otherwise())
  }

  /** Noted, not thrown: it may be the library that has called. */
  violate(what: string): void {
    this.trace(() => `VIOLATED: ${what}`)
    if (this.violations.length < 5) this.violations.push(`at ${this.atMs.toFixed(3)} ms: ${what}`)
  }
}
