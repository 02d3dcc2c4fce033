// A hook that runs the worker.

import { useCallback, useLayoutEffect, useRef, useState } from 'preact/hooks'
import type { Answer, LoadQuestion, LogSummary, Outcome, Question, SimulateQuestion } from './messages.ts'

/** The log, and the last simulation. */
interface SimulatorState {
  readonly loading: { readonly lines: number; readonly share: number } | undefined
  readonly log: LogSummary | undefined
  /** Why there is no log or no outcome. */
  readonly problem: string | undefined
  /** The progress from 0 to 1, or `undefined` if nothing is running. */
  readonly progress: number | undefined
  readonly outcome: Outcome | undefined
}

export interface Simulator extends SimulatorState {
  load(question: Omit<LoadQuestion, 'type'>): void
  simulate(question: Omit<SimulateQuestion, 'type'>): void
}

const NOTHING: SimulatorState = {
  loading: undefined,
  log: undefined,
  problem: undefined,
  progress: undefined,
  outcome: undefined,
}

/** Runs the simulator in a worker while the page is shown. */
export function useSimulator(): Simulator {
  const [state, setState] = useState(NOTHING)
  const worker = useRef<Worker>()
  // A plain effect would run after the page is painted, and a file dropped before that would be lost.
  useLayoutEffect(() => {
    const started = new Worker(new URL('./worker.ts', import.meta.url), { type: 'module' })
    worker.current = started
    started.onmessage = ({ data }: MessageEvent<Answer>) => setState((last) => heard(last, data))
    started.onerror = () => setState({ ...NOTHING, problem: 'this browser cannot start the simulator' })
    return () => started.terminate()
  }, [])
  const ask = useCallback((question: Question) => worker.current?.postMessage(question), [])
  const load = useCallback(
    (question: Omit<LoadQuestion, 'type'>) => {
      setState({ ...NOTHING, loading: { lines: 0, share: 0 } })
      ask({ type: 'load', ...question })
    },
    [ask],
  )
  const simulate = useCallback(
    (question: Omit<SimulateQuestion, 'type'>) => {
      setState((last) => ({ ...last, progress: 0, problem: undefined }))
      ask({ type: 'simulate', ...question })
    },
    [ask],
  )
  return { ...state, load, simulate }
}

function heard(last: SimulatorState, answer: Answer): SimulatorState {
  switch (answer.type) {
    case 'loading':
      return { ...last, loading: answer }
    case 'loaded':
      return { ...NOTHING, log: answer.log }
    case 'unreadable':
      return { ...NOTHING, problem: answer.message }
    case 'simulating':
      return { ...last, progress: answer.share }
    case 'simulated':
      return { ...last, progress: undefined, outcome: answer.outcome }
    case 'failed':
      return { ...last, progress: undefined, outcome: undefined, problem: answer.message }
  }
}
