import { EventLoop } from './event-loop.ts'
import { Random } from './random.ts'
import { type Execution, Server } from './server.ts'

/** The state that a whole run shares: random numbers, time, servers, and records. */
export class World {
  readonly random: Random
  readonly loop: EventLoop
  readonly servers: readonly Server[]
  /** The first few violations. */
  readonly violations: string[] = []
  readonly lines: string[] = []
  /** Counts of events. */
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

  /** Milliseconds since the start of the run. */
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

  /** Records a violation. It isn't thrown, because the caller may be the library. */
  violate(what: string): void {
    this.trace(() => `VIOLATED: ${what}`)
    if (this.violations.length < 5) this.violations.push(`at ${this.atMs.toFixed(3)} ms: ${what}`)
  }
}
