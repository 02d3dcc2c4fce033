import { type MemoryStore, memoryStore } from '../../src/index.ts'
import type { LimitSet } from '../../src/limits/limit-set.ts'
import type { Request } from '../../src/stores/redis/encode.ts'
import type { ConsumeOp, ConsumeOutcome, Op, Outcome, Part, RefundOutcome } from '../../src/stores/store.ts'
import type { EventLoop } from './event-loop.ts'

/** An op that the server executed. */
export interface Execution {
  readonly op: Op
  readonly outcome: Outcome
  /** The process that sent the op, and the time at which it did. */
  readonly by: number
  readonly sentAtMs: number
  /** When it was executed: by the simulated time, and by the server's clock. */
  readonly atMs: number
  readonly serverMs: number
  /** The offset of that clock. */
  readonly skewMs: number
  /** How often its key was lost or reset, or the clock set. */
  readonly generation: number
  /** Units charged or returned, per log. */
  readonly units: readonly number[]
  /** Whether the sender received the reply. */
  isHeard: boolean
  /** Positions of requests that were reported as admitted. */
  readonly reported: Set<number>
}

export function nameOf({ set, key }: Part): string {
  return `${set.limiter}/${key}`
}

/** The server with the state. It keeps its data unless it is flushed, and records all executions. */
export class Server {
  readonly executions: Execution[] = []
  /** The offset of the clock from the simulated time. */
  skewMs = 0
  /** The sum of all clock steps. */
  steppedMs = 0
  isFrozen = false
  /** When the data was last lost, or the clock set. */
  disturbedAtMs: number = Number.NEGATIVE_INFINITY
  readonly #loop: EventLoop
  readonly #held: (() => void)[] = []
  readonly #byLimits = new WeakMap<readonly number[], Execution>()
  readonly #resets = new Map<string, number>()
  #disturbances = 0
  #store: MemoryStore

  constructor(loop: EventLoop) {
    this.#loop = loop
    this.#store = memoryStore({ clock: () => this.clockMs })
  }

  get clockMs(): number {
    return Math.floor(this.#loop.wallMs) + this.skewMs
  }

  /** Runs a task. If the server is frozen, the task runs after it is thawed. */
  receive(task: () => void): void {
    if (this.isFrozen) this.#held.push(task)
    else task()
  }

  thaw(): void {
    this.isFrozen = false
    for (const task of this.#held.splice(0)) task()
  }

  flush(): void {
    this.#store = memoryStore({ clock: () => this.clockMs })
    this.#disturb()
  }

  step(ms: number): void {
    this.skewMs += ms
    this.steppedMs += Math.abs(ms)
    this.#disturb()
  }

  execute({ op, count }: Request, by: number, sentAtMs: number): Execution {
    const serverMs = this.clockMs
    const [outcomeInStore] = this.#store.applySync([op.type === 'consume' ? { ...op, count } : op])
    const outcome = copyOf(outcomeInStore)
    const part = op.parts[0]!
    const execution: Execution = {
      op,
      outcome,
      by,
      sentAtMs,
      atMs: this.#loop.nowMs,
      serverMs,
      skewMs: this.skewMs,
      generation: this.generationOf(part),
      units: unitsOf(op, outcome),
      isHeard: false,
      reported: new Set(),
    }
    this.executions.push(execution)
    if (outcome !== undefined && 'limits' in outcome) this.#byLimits.set(outcome.limits, execution)
    if (op.type === 'reset') this.#resets.set(nameOf(part), (this.#resets.get(nameOf(part)) ?? 0) + 1)
    return execution
  }

  /** Returns the execution that decided this outcome. Wrappers pass on the same `limits` array. */
  executionOf({ limits }: ConsumeOutcome): Execution | undefined {
    return this.#byLimits.get(limits)
  }

  /** Whether the server would admit this request now. */
  wouldAdmit({ parts, cost }: ConsumeOp): boolean {
    const [outcome] = this.#store.applySync([{ type: 'peek', parts, cost, count: 1 }])
    return (outcome as ConsumeOutcome).admitted > 0
  }

  generationOf(part: Part): number {
    return this.#disturbances + (this.#resets.get(nameOf(part)) ?? 0)
  }

  #disturb(): void {
    this.#disturbances++
    this.disturbedAtMs = this.#loop.nowMs
  }
}

/** Copies an outcome, because the store reuses the object. */
function copyOf(outcome: Outcome): Outcome {
  if (outcome === undefined || !('limits' in outcome)) return outcome
  return { ...outcome, limits: outcome.limits.slice() }
}

function unitsOf(op: Op, outcome: Outcome): readonly number[] {
  const { set } = op.parts[0]!
  switch (op.type) {
    case 'consume':
      return chargedBy(set, op.cost, outcome as ConsumeOutcome, 0, (outcome as ConsumeOutcome).admitted)
    case 'charge':
      return set.logs.map(() => op.units)
    case 'refund':
      return (outcome as RefundOutcome).returned
    default:
      return set.logs.map(() => 0)
  }
}

/** Returns units charged to the requests at these positions, per log. A shadow limit is charged only if it had room. */
export function chargedBy(
  set: LimitSet,
  cost: number,
  { limits }: ConsumeOutcome,
  from: number,
  end: number,
): readonly number[] {
  return set.logs.map(({ shadow, serves }) => {
    const i = serves[0]!
    const room = Math.max(0, Math.floor((set.limits[i]!.limit - limits[3 * i]!) / cost))
    return cost * Math.max(0, Math.min(end, shadow ? room : end) - from)
  })
}
