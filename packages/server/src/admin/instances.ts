// All processes on one store: how they find and ask each other through Redis.

import { randomUUID } from 'node:crypto'
import { hostname } from 'node:os'
import type { Logger } from 'pino'
import { type Processes, VERSION } from '../service/instance.ts'
import { hasShape, isAnswer, isQuestion, ProcessShape } from './answer-shapes.ts'
import type { InstanceStatus } from './api-types.ts'
import type { RedisLink } from './redis-link.ts'
import type { Every } from './timer.ts'

/** What a process says of itself, to the others. */
export interface Process extends Omit<InstanceStatus, 'isSelf'> {
  /** Of this process; its siblings have the same `id`. */
  readonly process: string
}

/** What processes tell each other. Those of another version of this are not understood, and not asked. */
type Message =
  /** Here I am; with `hello` all others say so, too. */
  | { readonly v: 1; readonly type: 'here'; readonly from: Process; readonly hello?: boolean }
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

/** What all that were asked have answered. */
interface Answers {
  readonly answers: readonly unknown[]
  /** Processes that are known and gave none. */
  readonly missing: number
}

interface Round {
  readonly question: string
  readonly waiting: Set<string>
  readonly answers: unknown[]
  readonly done: () => void
}

const HERE_EVERY_MS = 1000

/** Of whom nothing was heard for so long is gone. */
const GONE_MS = 3500

/** For so long others are waited for. */
const ANSWER_MS = 1000

/** Others that are known at a time. */
const MAX_OTHERS = 256

/** A longer message is none of ours. */
const MAX_CHARS = 32 * 2 ** 20

export interface InstancesOptions {
  /** The processes of this instance. */
  readonly processes: Processes
  /** Where there is a Redis: then others on the same are heard of. */
  readonly link: RedisLink | undefined
  readonly every: Every
  readonly log: Logger
  /** By question: an answer as Redis, and whoever listens there, may see it. */
  readonly concealed?: Readonly<Record<string, (answer: unknown, argument: unknown) => unknown>>
  /** A monotonic clock, in milliseconds. */
  readonly now?: () => number
}

/**
 * All processes that are the service on one store: those of this instance, and by way of Redis all others. Questions go to
 * one channel that all listen to, answers to one of whoever has asked. Nothing is kept, and while nobody asks, a word per
 * second is all that is sent.
 */
export class Instances implements Processes {
  readonly instance: string
  readonly #processes: Processes
  readonly #link: RedisLink | undefined
  readonly #concealed: NonNullable<InstancesOptions['concealed']>
  readonly #now: () => number
  readonly #self: Process
  readonly #answers = new Map<string, (argument: unknown) => unknown>()
  readonly #others = new Map<string, { readonly told: Process; heardAtMs: number }>()
  readonly #rounds = new Map<number, Round>()
  readonly #all: string
  readonly #stop: () => void
  #lastRound = 0

  constructor({
    processes,
    link,
    every,
    log,
    concealed = {},
    now = () => performance.now(),
  }: InstancesOptions) {
    this.#processes = processes
    this.instance = processes.instance
    this.#link = link
    this.#concealed = concealed
    this.#now = now
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
      subscribed: () => this.#say({ v: 1, type: 'here', from: this.#self, hello: true }),
      refused: (reason) =>
        log.warn({ reason }, 'other instances cannot be asked: what is shown is of this one alone'),
    })
    this.#stop = link ? every(HERE_EVERY_MS, () => this.#beat()) : () => {}
  }

  get self(): Process {
    return this.#self
  }

  /** How many instances are known, this one among them. */
  count(): number {
    return 1 + new Set(this.#present().map((process) => this.#others.get(process)!.told.id)).size
  }

  answer(question: string, answer: (argument: unknown) => unknown): void {
    this.#answers.set(question, answer)
    this.#processes.answer(question, answer)
  }

  async ask(question: string, argument?: unknown): Promise<readonly unknown[]> {
    return (await this.askAll(question, argument)).answers
  }

  /** Asks all; of those that are gone, or late, there is no answer. */
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
    const waiting = new Set(this.#present())
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

  /** Those that are known of other instances: siblings are asked otherwise. */
  #present(): string[] {
    const nowMs = this.#now()
    const found: string[] = []
    for (const [process, { told, heardAtMs }] of this.#others) {
      if (nowMs - heardAtMs > GONE_MS) this.#others.delete(process)
      else if (told.id !== this.#self.id) found.push(process)
    }
    return found
  }

  #beat(): void {
    this.#say({ v: 1, type: 'here', from: this.#self })
  }

  #say(message: Message, channel = this.#all): void {
    this.#link?.publish(channel, JSON.stringify(message))
  }

  #heard(text: string): void {
    const message = messageIn(text)
    if (message === undefined) return
    if (message.type === 'here') this.#met(message.from, message.hello === true)
    else if (message.type === 'gone') this.#left(message.process)
    else if (message.type === 'ask') void this.#reply(message)
    else {
      const round = this.#rounds.get(message.round)
      if (!round?.waiting.delete(message.from)) return
      if (isAnswer(round.question, message.answer)) round.answers.push(message.answer)
      if (round.waiting.size === 0) round.done()
    }
  }

  #met(told: Process, isNew: boolean): void {
    if (told.process === this.#self.process) return
    // Who is gone makes room for who comes.
    if (this.#others.size >= MAX_OTHERS) this.#present()
    if (this.#others.has(told.process) || this.#others.size < MAX_OTHERS) {
      this.#others.set(told.process, { told, heardAtMs: this.#now() })
    }
    if (isNew) this.#beat()
  }

  #left(process: string): void {
    this.#others.delete(process)
    for (const round of this.#rounds.values()) {
      if (round.waiting.delete(process) && round.waiting.size === 0) round.done()
    }
  }

  async #reply({ from, round, question, argument }: Message & { type: 'ask' }): Promise<void> {
    if (!this.#others.has(from) || this.#others.get(from)!.told.id === this.#self.id) return
    let answer: unknown
    try {
      if (isQuestion(question, argument)) {
        answer = await this.#answers.get(question)?.(argument)
        answer = this.#concealed[question]?.(answer, argument) ?? answer
      }
    } catch {
      // What fails here is no answer.
    }
    this.#say({ v: 1, type: 'answer', from: this.#self.process, round, answer }, this.#channelOf(from))
  }

  #channelOf(process: string): string {
    return `${this.#all}:${process}`
  }
}

/** Whoever can write to Redis may have said it. */
function messageIn(text: string): Message | undefined {
  if (text.length > MAX_CHARS) return undefined
  try {
    const message = JSON.parse(text)
    if (message?.v !== 1) return undefined
    const isRound = typeof message.from === 'string' && Number.isSafeInteger(message.round)
    switch (message.type) {
      case 'here':
        return hasShape(ProcessShape, message.from) ? message : undefined
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
