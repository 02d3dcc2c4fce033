// Several worker processes behind one listener.

import cluster, { type Worker } from 'node:cluster'
import { randomUUID } from 'node:crypto'
import type { Logger } from 'pino'
import { OneProcess, type Processes, SECRET_OF_WORKERS } from './instance.ts'

/** Environment variable with the instance ID that all workers share. */
const INSTANCE = 'SLIDEGATE_INSTANCE'

/** Timeout for answers from the other processes. */
const ANSWER_MS = 2000

/** Pause before a worker is replaced. The pause doubles each time, until a worker becomes ready. */
const FIRST_PAUSE_MS = 100
const LONGEST_PAUSE_MS = 5000

/** Workers are killed this long after draining. By then, only stuck workers are still running. */
const END_MS = 45_000

type Message =
  /** Sent by a worker to all processes. The primary forwards it to each of them. */
  | { readonly type: 'ask'; readonly id: number; readonly question: string; readonly argument: unknown }
  /** Sent by a worker to the primary. */
  | { readonly type: 'answer'; readonly id: number; readonly answer: unknown; readonly isKnown: boolean }
  /** All answers, forwarded by the primary. */
  | { readonly type: 'answers'; readonly id: number; readonly answers: readonly unknown[] }
  /** Sent by a worker that has started. */
  | { readonly type: 'ready' }

/** The workers of one primary process. */
export class WorkerProcesses extends OneProcess implements Processes {
  readonly #asked = new Map<number, (answers: readonly unknown[]) => void>()
  #lastId = 0

  constructor() {
    super(process.env[INSTANCE])
    process.on('message', (message: Message) => {
      if (message.type === 'ask') void this.#answer(message)
      if (message.type === 'answers') {
        this.#asked.get(message.id)?.(message.answers)
        this.#asked.delete(message.id)
      }
    })
  }

  override ask(question: string, argument?: unknown): Promise<readonly unknown[]> {
    const id = ++this.#lastId
    return new Promise((resolve) => {
      this.#asked.set(id, resolve)
      send({ type: 'ask', id, question, argument })
    })
  }

  /** Reports that this worker accepts requests. */
  ready(): void {
    send({ type: 'ready' })
  }

  async #answer({ id, question, argument }: Message & { type: 'ask' }): Promise<void> {
    // An error counts as no answer. Its cause is already in the log.
    const [answer] = await super.ask(question, argument).catch(() => [])
    send({ type: 'answer', id, answer, isKnown: answer !== undefined })
  }
}

/** Sends a message to the primary. Does nothing if the primary is gone, because this worker then ends, too. */
function send(message: Message): void {
  if (process.connected) process.send?.(message, undefined, undefined, () => {})
}

/** A question that has been sent to all workers, with their answers so far. */
interface Round {
  readonly asker: Worker
  readonly id: number
  readonly missing: Set<number>
  readonly answers: unknown[]
  readonly timer: NodeJS.Timeout
}

/**
 * Keeps `count` workers running and passes messages between them.
 *
 * Resolves to an exit code once all workers have ended after SIGTERM or SIGINT.
 */
export function runPrimary(count: number, log: Logger, drainMs: number): Promise<number> {
  return new Promise((resolve) => {
    const instance = randomUUID()
    const rounds = new Map<number, Round>()
    let lastRound = 0
    let isEnding = false
    let exitCode = 0
    let pauseMs = FIRST_PAUSE_MS
    const ready = new Set<number>()

    const workers = (): Worker[] =>
      Object.values(cluster.workers ?? {}).filter((worker) => worker !== undefined)
    const finish = (number: number, { asker, id, answers, timer }: Round): void => {
      clearTimeout(timer)
      rounds.delete(number)
      if (asker.isConnected()) asker.send({ type: 'answers', id, answers } satisfies Message)
    }
    const start = (): void => {
      const worker = cluster.fork({ ...SECRET_OF_WORKERS, [INSTANCE]: instance })
      worker.on('message', (message: Message) => received(worker, message))
      // The worker couldn't start, or died during a send. The exit handler below handles that.
      worker.on('error', ({ message }) =>
        log.warn({ worker: worker.process.pid, reason: message }, 'a worker failed'),
      )
    }
    const received = (worker: Worker, message: Message): void => {
      if (message.type === 'ready') {
        ready.add(worker.id)
        pauseMs = FIRST_PAUSE_MS
        if (ready.size === count) log.info({ workers: count }, 'all workers are ready')
      } else if (message.type === 'ask') {
        const number = ++lastRound
        const asked = workers().filter((each) => each.isConnected())
        const timer = setTimeout(() => finish(number, round), ANSWER_MS)
        const missing = new Set(asked.map(({ id }) => id))
        const round: Round = { asker: worker, id: message.id, missing, answers: [], timer }
        rounds.set(number, round)
        for (const each of asked) each.send({ ...message, id: number })
      } else if (message.type === 'answer') {
        const round = rounds.get(message.id)
        if (round === undefined) return
        if (message.isKnown) round.answers.push(message.answer)
        answered(worker, message.id, round)
      }
    }
    const answered = (worker: Worker, number: number, round: Round): void => {
      round.missing.delete(worker.id)
      if (round.missing.size === 0) finish(number, round)
    }
    const end = (): void => {
      isEnding = true
      for (const worker of workers()) worker.process.kill('SIGTERM')
      setTimeout(() => {
        for (const worker of workers()) worker.process.kill('SIGKILL')
      }, drainMs + END_MS).unref()
      if (workers().length === 0) resolve(exitCode)
    }

    cluster.on('exit', (worker, code, signal) => {
      const wasReady = ready.delete(worker.id)
      for (const [number, round] of rounds) answered(worker, number, round)
      if (!isEnding && !wasReady && ready.size === 0) {
        // The worker couldn't start, and has logged the reason. No other worker is ready.
        exitCode = code || 1
        end()
      }
      if (isEnding) {
        if (workers().length === 0) resolve(exitCode)
        return
      }
      log.error(
        { worker: worker.process.pid, code, signal },
        'a worker exited unexpectedly; it is being replaced',
      )
      setTimeout(() => !isEnding && start(), pauseMs)
      pauseMs = Math.min(LONGEST_PAUSE_MS, 2 * pauseMs)
    })
    process.on('SIGTERM', end)
    process.on('SIGINT', end)
    process.on('SIGHUP', () => {
      // Only signals workers that are ready. The others read the file as they start, and the signal would kill them.
      for (const worker of workers()) if (ready.has(worker.id)) worker.process.kill('SIGHUP')
    })
    for (let i = 0; i < count; i++) start()
  })
}
