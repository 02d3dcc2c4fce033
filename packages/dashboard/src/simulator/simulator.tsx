// The simulator page: the effect of a limit on the requests in a log.

import { useEffect, useMemo, useState } from 'preact/hooks'
import { PageHeader } from '../components/page-header.tsx'
import { Notice } from '../components/status.tsx'
import { LimitPanel, limitIn, type Numbers, windowIn } from './limit-panel.tsx'
import { LogPanel } from './log-panel.tsx'
import { ComparisonPanel, KindPanel, NeedsPanel, summaryOf } from './outcome-panels.tsx'
import { useSimulator } from './use-simulator.ts'
import './simulator.css'

const FIRST: Numbers = { limit: '100', window: '1m', kinds: ['sliding', 'fixed', 'bucket'] }

export function SimulatorPage() {
  const simulator = useSimulator()
  const { log, outcome, progress, problem, simulate } = simulator
  const [numbers, setNumbers] = useState(FIRST)
  const limit = limitIn(numbers)
  const windowMs = windowIn(numbers)
  const { kinds } = numbers
  useEffect(() => {
    if (log === undefined || log.requests === 0 || limit === undefined || windowMs === undefined) return
    simulate({ kinds, limit, windowMs })
  }, [log, limit, windowMs, kinds, simulate])
  // The panels aren't rendered again while a slider moves.
  const panels = useMemo(
    () =>
      log !== undefined &&
      outcome !== undefined && (
        <>
          <ComparisonPanel outcome={outcome} log={log} />
          <div class="kinds">
            {outcome.results.map((simulated) => (
              <KindPanel key={simulated.kind} simulated={simulated} log={log} />
            ))}
          </div>
          <NeedsPanel
            outcome={outcome}
            onTake={(needed) => setNumbers((last) => ({ ...last, limit: `${needed}` }))}
          />
        </>
      ),
    [outcome, log],
  )
  return (
    <>
      <PageHeader title="Simulator" />
      <p class="muted">
        What would a limit have done? The simulator sends the requests in a log through the service’s
        limiters, at the times in the log.
      </p>
      <LogPanel simulator={simulator} />
      <LimitPanel numbers={numbers} progress={progress} onChange={setNumbers} />
      {log !== undefined && problem !== undefined && (
        <Notice tone="bad">
          <p>The simulation failed: {problem}.</p>
        </Notice>
      )}
      <Summary text={outcome !== undefined && log !== undefined ? summaryOf(outcome, log) : ''} />
      <div class="outcome" aria-busy={progress !== undefined}>
        {panels}
      </div>
    </>
  )
}

const QUIET_MS = 600

/** Shows new text once the sliders stop. Otherwise, screen readers would announce every step. */
function Summary({ text }: { readonly text: string }) {
  const [shown, setShown] = useState('')
  useEffect(() => {
    const timer = setTimeout(() => setShown(text), QUIET_MS)
    return () => clearTimeout(timer)
  }, [text])
  return <p role="status">{shown}</p>
}
