import { asUnavailable, StoreUnavailableError } from '../../src/errors.ts'
import type { Receiver, Result, Transport } from '../../src/stores/redis/batcher.ts'
import type { Request } from '../../src/stores/redis/encode.ts'
import type { Batch } from '../../src/stores/redis/queue.ts'
import { type Execution, nameOf, type Server } from './server.ts'
import { FINE, NOTICED, NOTICED_MS, REFUSALS, type Weather } from './weather.ts'
import type { World } from './world.ts'

type Executions = readonly (Execution | undefined)[]

const DAMAGED: StoreUnavailableError = new StoreUnavailableError(
  'invalid_state',
  'the stored state is damaged',
)

/** The least pause between probes, minus the earliness of timers. */
const PATIENCE_MS = 24

/** The connection of one process to one server. Calls take time, and may get lost. */
export class Link implements Transport {
  readonly failure = asUnavailable
  weather: Weather = FINE
  isOrdered = false
  readonly #world: World
  readonly #server: Server
  readonly #by: number
  readonly #most: number
  /** Whether calls use one connection, so that none overtakes another. */
  readonly #isOneConnection: boolean
  #arrivedMs = 0
  /** Calls that timed out since the last reply. */
  #lost = 0
  #probedMs = Number.NEGATIVE_INFINITY
  #answeredMs = 0

  constructor(world: World, server: Server, by: number, most: number, isOneConnection: boolean) {
    this.#world = world
    this.#server = server
    this.#by = by
    this.#most = most
    this.#isOneConnection = isOneConnection
  }

  get isReady(): boolean {
    return this.weather.isDisconnected !== true
  }

  lost(): void {
    this.#world.count('calls lost')
    this.#lost++
  }

  send(batch: Batch, receiver: Receiver): void {
    this.#send(batch.ops, batch.place).then(
      (results) => receiver.answered(batch, results),
      (error: unknown) => receiver.failed(batch, error),
    )
  }

  #send(batch: readonly Request[], place: number): Promise<readonly Result[]> {
    const { random, loop } = this.#world
    const { refused = 0, lost = 0, unheard = 0, name } = this.weather
    this.#world.trace(() => `p${this.#by} sends ${batch.map(wordsOf).join(', ')} (${name})`)
    this.#world.count(batch.length > 1 ? 'batches' : 'lone ops')
    this.#expectBounds(batch, place)
    this.#expectPatience()
    const sentAtMs = loop.nowMs
    if (random.chance(refused)) return this.#fail(this.#delayMs(), random.pick(REFUSALS), 'refused')
    if (random.chance(lost)) return this.#lose('lost requests')
    if (random.chance(unheard)) {
      this.#carryOut(batch, sentAtMs, () => {})
      return this.#lose('replies lost')
    }
    return new Promise((resolve) => {
      this.#carryOut(batch, sentAtMs, (executions) => {
        this.#after(this.#delayMs(), 'back', () => {
          this.isOrdered = this.#isOneConnection
          this.#lost = 0
          for (const execution of executions) if (execution !== undefined) execution.isHeard = true
          resolve(executions.map((execution) => (execution === undefined ? DAMAGED : execution.outcome)))
        })
      })
    })
  }

  #expectBounds(batch: readonly Request[], place: number): void {
    let requests = 0
    for (const { op, count } of batch) requests += op.type === 'consume' ? count / op.count : 1
    this.#world.expect(batch.length >= 1 && batch.length <= 128, () => `a batch of ${batch.length} ops`)
    this.#world.expect(requests <= 512, () => `a batch of ${requests} requests`)
    this.#world.expect(place >= 0 && place < this.#most, () => `place ${place} of ${this.#most}`)
  }

  /** Checks that a silent server receives only occasional probes. */
  #expectPatience(): void {
    if (this.#lost < this.#most) return
    const { loop } = this.#world
    const passedMs = loop.nowMs - this.#probedMs
    this.#world.expect(passedMs >= PATIENCE_MS, () => `a silent server was called again after ${passedMs} ms`)
    this.#world.count('calls to a silent server')
    this.#probedMs = loop.nowMs
  }

  #carryOut(batch: readonly Request[], sentAtMs: number, whenDone: (executions: Executions) => void): void {
    this.#after(this.#delayMs(), 'there', () => {
      this.#server.receive(() => {
        const executions = batch.map((request) => {
          const isDamaged = this.#world.random.chance(this.weather.damaged ?? 0)
          if (isDamaged) this.#world.count('damaged')
          return isDamaged ? undefined : this.#server.execute(request, this.#by, sentAtMs)
        })
        const units = () => executions.map((execution) => `[${execution?.units ?? 'damaged'}]`).join(', ')
        this.#world.trace(() => `  of p${this.#by}: ${batch.map(wordsOf).join(', ')}: ${units()}`)
        whenDone(executions)
      })
    })
  }

  #delayMs(): number {
    return this.#world.random.between(...this.weather.delayMs)
  }

  #after(ms: number, way: 'there' | 'back', task: () => void): void {
    const { loop } = this.#world
    let atMs = loop.nowMs + ms
    if (this.#isOneConnection) {
      if (way === 'there') this.#arrivedMs = atMs = Math.max(atMs, this.#arrivedMs)
      else this.#answeredMs = atMs = Math.max(atMs, this.#answeredMs)
    }
    loop.after(atMs - loop.nowMs, task)
  }

  #lose(how: string): Promise<never> {
    const { random } = this.#world
    this.#world.count(how)
    if (random.chance(NOTICED))
      return this.#fail(random.between(...NOTICED_MS), 'Connection is closed.', 'noticed')
    return new Promise(() => {})
  }

  #fail(ms: number, message: string, how: string): Promise<never> {
    this.#world.count(how)
    return new Promise((_, reject) => this.#world.loop.after(ms, () => reject(new Error(message))))
  }
}

function wordsOf({ op, count }: Request): string {
  const name = `${op.type} ${nameOf(op.parts[0]!)}`
  if (op.type === 'consume') return `${name} ${op.cost}x${count}${op.leaseMs > 0 ? ' on lease' : ''}`
  return 'units' in op ? `${name} ${op.units}` : name
}
