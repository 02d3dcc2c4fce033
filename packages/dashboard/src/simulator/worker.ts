// The worker: reads and simulates logs in pieces, so that it can receive messages in between.

import type { Need } from '../../../replay/src/counts/needed-limits.ts'
import { bytesOf, type Log, readLog } from './log.ts'
import type { Answer, LoadQuestion, LogSummary, Outcome, Question, SimulateQuestion } from './messages.ts'
import { sampleLog } from './sample.ts'
import { limitOf, needsOfLog, simulate, timelineOf } from './simulate.ts'

const PIECE_MS = 25
const PROGRESS_MS = 100

let turn = 0
let log: Log | undefined
/** A cache of the limits that callers need. They depend only on the log and the window. */
let known: { readonly log: Log; readonly windowMs: number; readonly needs: readonly Need[] } | undefined

addEventListener('message', ({ data }: MessageEvent<Question>) => {
  // While a new log is loading, a `simulate` message is still about the previous log.
  if (data.type === 'simulate' && log === undefined) return
  const pieces = new Pieces(++turn)
  if (data.type === 'load') void load(data, pieces)
  else void run(data, log!, pieces)
})

function answer(message: Answer): void {
  postMessage(message)
}

/** Does the work for one message in pieces. Reports progress, and stops if a newer message arrives. */
class Pieces {
  readonly #turn: number
  #pausedMs = performance.now()
  #toldMs = performance.now()

  constructor(turn: number) {
    this.#turn = turn
  }

  get isWanted(): boolean {
    return this.#turn === turn
  }

  /** Pauses regularly to receive messages. Resolves to false if a newer message has arrived. */
  async pause(progress: () => Answer): Promise<boolean> {
    const nowMs = performance.now()
    if (nowMs - this.#pausedMs < PIECE_MS) return this.isWanted
    if (nowMs - this.#toldMs >= PROGRESS_MS) {
      answer(progress())
      this.#toldMs = nowMs
    }
    await nextTask()
    this.#pausedMs = performance.now()
    return this.isWanted
  }

  /** Runs the work and returns its result, or nothing if a newer message arrives. */
  async finish<Progress, Result>(
    work: Generator<Progress, Result, void>,
    answerOf: (progress: Progress) => Answer,
  ): Promise<Result | undefined> {
    for (;;) {
      const { done, value } = work.next()
      if (done) return value
      if (!(await this.pause(() => answerOf(value)))) return undefined
    }
  }
}

const channel = new MessageChannel()

/** Resolves in the next task. Uses a message, because browsers delay nested timers by a few milliseconds. */
function nextTask(): Promise<void> {
  return new Promise((resolve) => {
    channel.port1.onmessage = () => resolve()
    channel.port2.postMessage(undefined)
  })
}

async function load({ source, options }: LoadQuestion, pieces: Pieces): Promise<void> {
  log = undefined
  known = undefined
  try {
    const file = source === 'sample' ? sampleLog() : source
    let bytes = 0
    const chunks = bytesOf(file, (read) => {
      bytes = read
    })
    const loading = (lines: number): Answer => ({ type: 'loading', lines, share: bytes / file.size })
    const read = await readLog(chunks, options, (lines) => pieces.pause(() => loading(lines)))
    if (read === undefined || !pieces.isWanted) return
    log = read
    answer({ type: 'loaded', log: summaryOf(read) })
  } catch (error) {
    if (pieces.isWanted) answer({ type: 'unreadable', message: messageOf(error) })
  }
}

function summaryOf(log: Log): LogSummary {
  const { callers, timesMs, costs, skipped, starts: _starts, ...rest } = log
  return {
    ...rest,
    requests: timesMs.length,
    callers: callers.length,
    hasCosts: costs !== undefined,
    skipped: skipped.count,
    reasons: Array.from(skipped.reasons).sort(([, a], [, b]) => b - a),
    badLines: skipped.first,
    timeline: timelineOf(log),
  }
}

async function run(question: SimulateQuestion, log: Log, pieces: Pieces): Promise<void> {
  const { kinds, limit, windowMs } = question
  try {
    const refused = kinds.flatMap((kind) => {
      const message = refusalOf(() => limitOf(kind, limit, windowMs))
      return message === undefined ? [] : { kind, message }
    })
    const held = kinds.filter((kind) => refused.every((each) => each.kind !== kind))
    const needs = await needsOnce(log, windowMs, pieces)
    if (needs === undefined) return
    const simulating = (share: number): Answer => ({ type: 'simulating', share })
    const results = await pieces.finish(simulate(log, held, limit, windowMs), simulating)
    if (results === undefined) return
    const outcome: Outcome = { question, results, refused, needs }
    answer({ type: 'simulated', outcome })
  } catch (error) {
    if (pieces.isWanted) answer({ type: 'failed', message: messageOf(error) })
  }
}

async function needsOnce(log: Log, windowMs: number, pieces: Pieces): Promise<readonly Need[] | undefined> {
  if (known?.log === log && known.windowMs === windowMs) return known.needs
  const needs = await pieces.finish(needsOfLog(log, windowMs), () => ({ type: 'simulating', share: 0 }))
  if (needs !== undefined) known = { log, windowMs, needs }
  return needs
}

function refusalOf(declare: () => unknown): string | undefined {
  try {
    declare()
    return undefined
  } catch (error) {
    return messageOf(error)
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
