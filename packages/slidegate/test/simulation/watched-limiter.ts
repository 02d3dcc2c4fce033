import { createLimiter, type Decision, failurePolicy, type Limiter, type Store } from '../../src/index.ts'
import type { Call, ConsumeOutcome, Op } from '../../src/stores/store.ts'
import { expectAnswer } from './answers.ts'
import { type CallerRequest, type Question, wordsOf, wordsOfAnswer } from './caller-request.ts'
import { expectDenialIsRight } from './denials.ts'
import type { Process } from './process.ts'
import type { Definition, Policy } from './scenario.ts'
import { nameOf } from './server.ts'
import { StoreWatch } from './store-watch.ts'
import type { World } from './world.ts'

/** A limiter of one process, with a record of all its requests. */
export class WatchedLimiter {
  readonly definition: Definition
  readonly policy: Policy
  readonly process: Process
  readonly name: string
  readonly requests: CallerRequest[] = []
  /** Ops that callers sent. Ops that the library sent on its own aren't included. */
  readonly callersOps = new Map<Op, CallerRequest>()
  readonly #world: World
  readonly #limiter: Limiter
  readonly #watch: StoreWatch
  readonly #localGenerations = new Map<string, number>()
  #isClosed = false
  #unsettled = 0
  #decisionsTold = 0
  /** The current request, until it has reached the store. */
  #current: CallerRequest | undefined

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

  /** Makes a request. `of` is the request that a refund returns. */
  ask(question: Question, key: string, cost: number, { of, mustBeExact = false }: Further = {}): void {
    const { nowMs, stalledMs, stalledHereMs } = this.#world.loop
    const request: CallerRequest = {
      number: this.requests.length,
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
    this.requests.push(request)
    this.#unsettled++
    this.#world.trace(() => `${wordsOf(request)}?`)
    if (of !== undefined) of.isRefundAsked = true
    if (question === 'reset') this.#localGenerations.set(key, this.#localGenerationOf(key) + 1)
    this.#current = request
    const answer = this.#ask(request)
    this.#current = undefined
    answer.then(
      (result) => this.#settled(request, result),
      (error) => this.#settled(request, undefined, error),
    )
  }

  /** Checks that all requests are answered, after the last one. */
  expectQuiet(): void {
    const { name } = this
    const consumed = this.requests.filter(
      ({ question, decision }) => question === 'consume' && decision,
    ).length
    this.#world.expect(this.#unsettled === 0, () => `${name}: ${this.#unsettled} haven't been answered`)
    this.#world.expect(
      this.#decisionsTold === consumed,
      () => `${name}: ${consumed} decisions, but ${this.#decisionsTold} events`,
    )
  }

  #ask({ question, key, cost, refundOf }: CallerRequest): Promise<unknown> {
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

  #settled(request: CallerRequest, result: unknown, error?: unknown): void {
    const { question, key } = request
    const { nowMs, roundAtMs } = this.#world.loop
    this.#unsettled--
    request.settledAtMs = nowMs
    request.roundAtMs = roundAtMs
    request.error = error
    request.localGeneration = this.#localGenerationOf(key)
    if (error === undefined) {
      if (question === 'consume' || question === 'peek') request.decision = result as Decision
      if (question === 'refund') request.returned = result as number
    }
    this.#watch.settled(request)
    this.#world.trace(() => `  ${wordsOf(request)}: ${wordsOfAnswer(request)}`)
    expectAnswer(this.#world, request)
  }

  /** Wraps the store to record the limiter's ops. */
  #observed(store: Store): Store {
    return {
      failurePolicy,
      apply: (ops, call) => {
        const request = this.#current
        this.#current = undefined
        if (request === undefined) {
          this.#world.count('late returns')
          store.apply(ops, call)
          return
        }
        const { question, atMs } = request
        request.part = ops[0]!.parts[0]!
        if (question !== 'consume' && question !== 'peek') this.callersOps.set(ops[0]!, request)
        if (question === 'reset') this.process.resetAtMs.set(nameOf(request.part), atMs)
        this.#watch.asks(request)
        store.apply(ops, this.#observedCall(request, ops[0]!, call))
      },
      shardOf: (op) => store.shardOf!(op),
      close: () => store.close(),
    }
  }

  #observedCall(request: CallerRequest, op: Op, call: Call): Call {
    return {
      get isSettled() {
        return call.isSettled
      },
      resolve: (outcomes, position) => {
        if (op.type === 'consume') {
          const outcome = outcomes[0] as ConsumeOutcome
          if (position < outcome.admitted) this.#admitted(request, outcome, position, call.isSettled)
          else if (outcome.source === 'denyCache') expectDenialIsRight(this.#world, request, op)
        }
        const { source } = (outcomes[0] ?? {}) as Partial<ConsumeOutcome>
        if (source === 'denyCache' || source === 'lease') this.#watch.withdraws(request)
        this.#watch.answers(request, () => call.resolve(outcomes, position))
      },
      reject: (error) => this.#watch.answers(request, () => call.reject(error)),
    }
  }

  /** Checks that an admitted request was charged at its own position. */
  #admitted(request: CallerRequest, outcome: ConsumeOutcome, position: number, isLate: boolean): void {
    const world = this.#world
    const { nowMs, wallMs, arrivedAtMs } = world.loop
    const words = () => `${wordsOf(request)}, which is admitted by the ${outcome.source},`
    const execution = world.serverOf(request.key).executionOf(outcome)
    if (execution === undefined) {
      world.violate(`${words()} has no charge`)
      return
    }
    const { reported, sentAtMs } = execution
    world.expect(!reported.has(position), () => `${words()} shares a charge with another`)
    reported.add(position)
    Object.assign(request, { execution, position, isLate, heardAtMs: Math.floor(wallMs) })
    if (outcome.source === 'lease') {
      const resetAtMs = this.process.resetAtMs.get(nameOf(request.part!)) ?? Number.NEGATIVE_INFINITY
      world.expect(
        sentAtMs >= resetAtMs,
        () => `${words()} was charged before the key was reset in this process`,
      )
    }
    if (!isLate) return
    world.count('late admissions')
    const { roundAtMs = Number.NEGATIVE_INFINITY, settledAtMs = nowMs } = request
    world.expect(
      arrivedAtMs > roundAtMs,
      () => `${words()} timed out although its answer could have been read`,
    )
    world.expect(sentAtMs <= settledAtMs, () => `${words()} was sent after it had timed out`)
  }

  #localGenerationOf(key: string): number {
    return this.#localGenerations.get(key) ?? 0
  }
}

interface Further {
  readonly of?: CallerRequest
  /** Whether the servers have been back for long enough. */
  readonly mustBeExact?: boolean
}
