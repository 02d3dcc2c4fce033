// Finds and queries all processes that share the store, through Redis.

import { randomUUID } from 'node:crypto'
import { hostname } from 'node:os'
import type { Logger } from 'pino'
import { type Processes, VERSION } from '../service/instance.ts'
import { hasShape, isAnswer, isQuestion, ProcessShape } from './answer-shapes.ts'
import type { GoneInstance } from './api-types.ts'
import { Presence, type Process } from './presence.ts'
import type { RedisLink } from './redis-link.ts'
import type { Every } from './timer.ts'

/** A message between processes. Messages with another version are ignored. */
type Message =
  /** Announces a process and its decision rate. If `hello` is set, all other processes announce themselves, too. */
  | {
      readonly v: 1
      readonly type: 'here'
      readonly from: Process
      readonly perSecond: number
      readonly hello?: boolean
    }
  | { readonly v: 1; readonly type: 'gone'; readonly process: string }
  | {
      readonly v: 1
      readonly type: 'ask'
      readonly from: string
      readonly round: number
      readonly question: string
      readonly argument?: unknown
    }
  | {
      readonly v: 1
      readonly type: 'answer'
      readonly from: string
      readonly round: number
      readonly answer?: unknown
    }

interface Answers {
  readonly answers: readonly unknown[]
  /** The number of known processes that haven't answered in time. */
  readonly missing: number
}

interface Round {
  readonly question: string
  readonly waiting: Set<string>
  readonly answers: unknown[]
  readonly done: () => void
}

const HERE_EVERY_MS = 1000

/** How long to wait for answers. */
const ANSWER_MS = 1000

/** Longer messages are ignored. */
const MAX_CHARS = 32 * 2 ** 20

export interface InstancesOptions {
  /** The processes of this instance. */
  readonly processes: Processes
  /** Connects to the other instances. Undefined without Redis. */
  readonly link: RedisLink | undefined
  readonly every: Every
  readonly log: Logger
  /** Returns the number of decisions that this process made in the last second. */
  readonly perSecond: () => number
  /** Functions by query. Each removes secrets from an answer before the answer is sent through Redis. */
  readonly concealed?: Readonly<Record<string, (answer: unknown, argument: unknown) => unknown>>
  /** A monotonic clock, in milliseconds. */
  readonly now?: () => number
}

/**
 * Queries all processes that share the store.
 *
 * Processes of this instance are queried directly, all others through Redis. A query goes to a channel that
 * all processes subscribe to, and an answer to the channel of the querying process. Nothing is stored. While
 * there are no queries, each process just announces itself once per second.
 */
export class Instances implements Processes {
  readonly instance: string
  readonly #processes: Processes
  readonly #link: RedisLink | undefined
  readonly #concealed: NonNullable<InstancesOptions['concealed']>
  readonly #perSecond: () => number
  readonly #self: Process
  readonly #answers = new Map<string, (argument: unknown) => unknown>()
  readonly #others: Presence
  readonly #rounds = new Map<number, Round>()
  readonly #all: string
  readonly #stop: () => void
  #lastRound = 0

  constructor({
    processes,
    link,
    every,
    log,
    perSecond,
    concealed = {},
    now = () => performance.now(),
  }: InstancesOptions) {
    this.#processes = processes
    this.instance = processes.instance
    this.#link = link
    this.#concealed = concealed
    this.#perSecond = perSecond
    this.#others = new Presence(now)
    this.#self = {
      id: processes.instance,
      process: randomUUID(),
      host: hostname(),
      pid: process.pid,
      version: VERSION,
      startedAtMs: Math.round(performance.timeOrigin),
    }
    this.#all = `${link?.prefix}:{instances}`
    link?.subscribe([this.#all, this.#channelOf(this.#self.process)], {
      heard: (text) => this.#heard(text),
      subscribed: () => this.#beat(true),
      refused: (reason) =>
        log.warn({ reason }, "can't query other instances: the admin API shows only this one"),
    })
    this.#stop = link ? every(HERE_EVERY_MS, () => this.#beat()) : () => {}
  }

  get self(): Process {
    return this.#self
  }

  /** Returns the number of known instances, including this one. */
  count(): number {
    return 1 + new Set(this.#present().map(({ id }) => id)).size
  }

  /** Returns the instances that disappeared in the last 15 minutes without signing off. */
  gone(): readonly GoneInstance[] {
    return this.#others.gone()
  }

  answer(question: string, answer: (argument: unknown) => unknown): void {
    this.#answers.set(question, answer)
    this.#processes.answer(question, answer)
  }

  async ask(question: string, argument?: unknown): Promise<readonly unknown[]> {
    return (await this.askAll(question, argument)).answers
  }

  /** Queries all processes. Omits processes that are gone or don't answer in time. */
  async askAll(question: string, argument?: unknown): Promise<Answers> {
    const [own, others] = await Promise.all([
      this.#processes.ask(question, argument),
      this.#askOthers(question, argument),
    ])
    return { answers: [...own, ...others.answers], missing: others.missing }
  }

  close(): void {
    this.#stop()
    this.#say({ v: 1, type: 'gone', process: this.#self.process })
  }

  async #askOthers(question: string, argument: unknown): Promise<Answers> {
    const waiting = new Set(this.#present().map(({ process }) => process))
    if (waiting.size === 0) return { answers: [], missing: 0 }
    const number = ++this.#lastRound
    const answers: unknown[] = []
    await new Promise<void>((resolve) => {
      const done = () => {
        clearTimeout(timer)
        this.#rounds.delete(number)
        resolve()
      }
      const timer = setTimeout(done, ANSWER_MS)
      this.#rounds.set(number, { question, waiting, answers, done })
      this.#say({ v: 1, type: 'ask', from: this.#self.process, round: number, question, argument })
    })
    return { answers, missing: waiting.size }
  }

  /** Returns the known processes of other instances. The processes of this instance are queried directly. */
  #present(): readonly Process[] {
    return this.#others.present().filter(({ id }) => id !== this.#self.id)
  }

  #beat(hello = false): void {
    this.#say({ v: 1, type: 'here', from: this.#self, perSecond: this.#perSecond(), ...(hello && { hello }) })
  }

  #say(message: Message, channel = this.#all): void {
    this.#link?.publish(channel, JSON.stringify(message))
  }

  #heard(text: string): void {
    const message = messageIn(text)
    if (message === undefined) return
    if (message.type === 'here') this.#met(message)
    else if (message.type === 'gone') this.#left(message.process)
    else if (message.type === 'ask') void this.#reply(message)
    else {
      const round = this.#rounds.get(message.round)
      if (!round?.waiting.delete(message.from)) return
      if (isAnswer(round.question, message.answer)) round.answers.push(message.answer)
      if (round.waiting.size === 0) round.done()
    }
  }

  #met({ from, perSecond, hello }: Message & { type: 'here' }): void {
    if (from.process === this.#self.process) {
      this.#others.echoed()
      return
    }
    this.#others.heard(from, perSecond)
    if (hello === true) this.#beat()
  }

  #left(process: string): void {
    this.#others.left(process)
    for (const round of this.#rounds.values()) {
      if (round.waiting.delete(process) && round.waiting.size === 0) round.done()
    }
  }

  async #reply({ from, round, question, argument }: Message & { type: 'ask' }): Promise<void> {
    const asker = this.#others.get(from)
    if (asker === undefined || asker.id === this.#self.id) return
    let answer: unknown
    try {
      if (isQuestion(question, argument)) {
        answer = await this.#answers.get(question)?.(argument)
        answer = this.#concealed[question]?.(answer, argument) ?? answer
      }
    } catch {
      // If this process can't answer, it sends an empty answer.
    }
    this.#say({ v: 1, type: 'answer', from: this.#self.process, round, answer }, this.#channelOf(from))
  }

  #channelOf(process: string): string {
    return `${this.#all}:${process}`
  }
}

/** Parses a message. Anyone who can write to Redis may have sent it. */
function messageIn(text: string): Message | undefined {
  if (text.length > MAX_CHARS) return undefined
  try {
    const message = JSON.parse(text)
    if (message?.v !== 1) return undefined
    const isRound = typeof message.from === 'string' && Number.isSafeInteger(message.round)
    switch (message.type) {
      case 'here':
        return isHeartbeat(message) ? message : undefined
      case 'gone':
        return typeof message.process === 'string' ? message : undefined
      case 'ask':
        return isRound && typeof message.question === 'string' ? message : undefined
      case 'answer':
        return isRound ? message : undefined
      default:
        return undefined
    }
  } catch {
    return undefined
  }
}

function isHeartbeat({ from, perSecond }: { readonly from: unknown; readonly perSecond: unknown }): boolean {
  return hasShape(ProcessShape, from) && Number.isFinite(perSecond) && (perSecond as number) >= 0
}
