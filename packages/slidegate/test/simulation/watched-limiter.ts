import { createLimiter, type Decision, failurePolicy, type Limiter, type Store } from '../../src/index.ts'
import type { Call, ConsumeOutcome, Op } from '../../src/stores/store.ts'
import { expectAnswer } from './answers.ts'
import { type Asked, type Question, wordsOf, wordsOfAnswer } from './asked.ts'
import { expectDenialIsRight } from './denials.ts'
import type { Process } from './process.ts'
import type { Definition, Policy } from './scenario.ts'
import { nameOf } from './server.ts'
import { StoreWatch } from './store-watch.ts'
import type { World } from './world.ts'

/** A limiter of one process, and all that is asked of it. */
export class WatchedLimiter {
  readonly definition: Definition
  readonly policy: Policy
  readonly process: Process
  readonly name: string
  readonly asked: Asked[] = []
  /** Ops that callers have asked for, and not the library on its own. */
  readonly callersOps = new Map<Op, Asked>()
  readonly #world: World
  readonly #limiter: Limiter
  readonly #watch: StoreWatch
  readonly #localGenerations = new Map<string, number>()
  #isClosed = false
  #unsettled = 0
  #decisionsTold = 0
  /** What is being asked, until it has reached the store. */
  #current: Asked | undefined

  constructor(world: World, process: Process, definition: Definition, policy: Policy) {
    this.#world = world
    this.process = process
    this.definition = definition
    this.policy = policy
    this.name = `p${process.number}:${definition.name}`
    this.#watch = new StoreWatch(world, this.name, policy)
    const store = this.#observed(process.store)
    this.#limiter = createLimiter({
      name: definition.name,
      limits: definition.limits,
      ...policy,
      store,
      logger: false,
    })
      .on('storeDown', () => this.#watch.wentDown())
      .on('storeUp', () => this.#watch.cameUp())
      .on('clockStep', ({ byMs }) => this.#watch.clockStep(byMs))
      .on('decision', () => {
        this.#decisionsTold++
      })
  }

  close(): void {
    this.#isClosed = true
    this.#limiter.close()
  }

  /** @param of what is returned, by a refund */
  ask(question: Question, key: string, cost: number, { of, mustBeExact = false }: Further = {}): void {
    const { nowMs, stalledMs, stalledHereMs } = this.#world.loop
    const asked: Asked = {
      number: this.asked.length,
      of: this,
      question,
      key,
      cost,
      refundOf: of,
      atMs: nowMs,
      stalledMs,
      stalledHereMs,
      isRefused: this.#isClosed,
      mustBeExact,
      isRefundAsked: false,
    }
    this.asked.push(asked)
    this.#unsettled++
    this.#world.trace(() => `${wordsOf(asked)}?`)
    if (of !== undefined) of.isRefundAsked = true
    if (question === 'reset') this.#localGenerations.set(key, this.#localGenerationOf(key) + 1)
    this.#current = asked
    const answer = this.#ask(asked)
    this.#current = undefined
    answer.then(
      (told) => this.#settled(asked, told),
      (error) => this.#settled(asked, undefined, error),
    )
  }

  /** When nothing is asked any more. */
  expectQuiet(): void {
    const { name } = this
    const consumed = this.asked.filter(({ question, decision }) => question === 'consume' && decision).length
    this.#world.expect(this.#unsettled === 0, () => `${name}: ${this.#unsettled} have not been answered`)
    this.#world.expect(
      this.#decisionsTold === consumed,
      () => `${name}: ${consumed} decisions, and ${this.#decisionsTold} events of them`,
    )
  }

  #ask({ question, key, cost, refundOf }: Asked): Promise<unknown> {
    switch (question) {
      case 'consume':
        return this.#limiter.consume(key, { cost })
      case 'peek':
        return this.#limiter.peek(key, { cost })
      case 'charge':
        return this.#limiter.charge(key, cost)
      case 'refund':
        return this.#limiter.refund(key, refundOf!.decision!, cost)
      case 'reset':
        return this.#limiter.reset(key)
    }
  }

  #settled(asked: Asked, told: unknown, error?: unknown): void {
    const { question, key } = asked
    const { nowMs, roundAtMs } = this.#world.loop
    this.#unsettled--
    asked.settledAtMs = nowMs
    asked.roundAtMs = roundAtMs
    asked.error = error
    asked.localGeneration = this.#localGenerationOf(key)
    if (error === undefined) {
      if (question === 'consume' || question === 'peek') asked.decision = told as Decision
      if (question === 'refund') asked.returned = told as number
    }
    this.#watch.settled(asked)
    this.#world.trace(() => `  ${wordsOf(asked)}: ${wordsOfAnswer(asked)}`)
    expectAnswer(this.#world, asked)
  }

  /** The store, as the limiter sees it. */
  #observed(store: Store): Store {
    return {
      failurePolicy,
      apply: (ops, call) => {
        const asked = this.#current
        this.#current = undefined
        if (asked === undefined) {
          this.#world.count('late returns')
          store.apply(ops, call)
          return
        }
        const { question, atMs } = asked
        asked.part = ops[0]!.parts[0]!
        if (question !== 'consume' && question !== 'peek') this.callersOps.set(ops[0]!, asked)
        if (question === 'reset') this.process.resetAtMs.set(nameOf(asked.part), atMs)
        this.#watch.asks(asked)
        store.apply(ops, this.#observedCall(asked, ops[0]!, call))
      },
      shardOf: (op) => store.shardOf!(op),
      close: () => store.close(),
    }
  }

  #observedCall(asked: Asked, op: Op, call: Call): Call {
    return {
      get isSettled() {
        return call.isSettled
      },
      resolve: (outcomes, position) => {
        if (op.type === 'consume') {
          const outcome = outcomes[0] as ConsumeOutcome
          if (position < outcome.admitted) this.#admitted(asked, outcome, position, call.isSettled)
          else if (outcome.source === 'denyCache') expectDenialIsRight(this.#world, asked, op)
        }
        const { source } = (outcomes[0] ?? {}) as Partial<ConsumeOutcome>
        if (source === 'denyCache' || source === 'lease') this.#watch.withdraws(asked)
        this.#watch.answers(asked, () => call.resolve(outcomes, position))
      },
      reject: (error) => this.#watch.answers(asked, () => call.reject(error)),
    }
  }

  /** Who is admitted has been charged, in a place of his own. */
  #admitted(asked: Asked, outcome: ConsumeOutcome, position: number, isLate: boolean): void {
    const world = this.#world
    const { nowMs, wallMs, arrivedAtMs } = world.loop
    const words = () => `${wordsOf(asked)}, which is admitted by the ${outcome.source},`
    const execution = world.serverOf(asked.key).executionOf(outcome)
    if (execution === undefined) {
      world.violate(`${words()} was charged by nothing`)
      return
    }
    const { told, sentAtMs } = execution
    world.expect(!told.has(position), () => `${words()} shares a charge with another`)
    told.add(position)
    Object.assign(asked, { execution, position, isLate, heardAtMs: Math.floor(wallMs) })
    if (outcome.source === 'lease') {
      const resetAtMs = this.process.resetAtMs.get(nameOf(asked.part!)) ?? Number.NEGATIVE_INFINITY
      world.expect(sentAtMs >= resetAtMs, () => `${words()} was charged before the key was reset here`)
    }
    if (!isLate) return
    world.count('late admissions')
    const { roundAtMs = Number.NEGATIVE_INFINITY, settledAtMs = nowMs } = asked
    world.expect(
      arrivedAtMs > roundAtMs,
      () => `${words()} was given up when its answer was there to be read`,
    )
    world.expect(sentAtMs <= settledAtMs, () => `${words()} was sent when it had been given up`)
  }

  #localGenerationOf(key: string): number {
    return this.#localGenerations.get(key) ?? 0
  }
}

interface Further {
  readonly of?: Asked
  /** Whether the servers have been back for long enough. */
  readonly mustBeExact?: boolean
}
