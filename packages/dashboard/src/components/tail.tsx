// A live list of decisions, for a limiter or a key.

import { useEffect, useRef, useState } from 'preact/hooks'
import { events } from '../api.ts'
import type { OneKey, TailDecision } from '../api-types.ts'
import { blockInWords, count, duration, timeOfDay } from '../format.ts'
import { useLive, useVisible } from '../live.tsx'
import { isCut, KeyLink } from './key-link.tsx'
import { Badge, Problem } from './status.tsx'
import { type Column, Table } from './table.tsx'

/** The number of decisions shown, and how often the list is updated. */
const KEPT = 30
const SHOWN_EVERY_MS = 500

interface Line extends TailDecision {
  readonly number: number
}

export function Tail({
  limiter,
  of,
  hasPages = true,
}: {
  readonly limiter: string
  /** The key to follow immediately. Default: follows all keys once the user clicks the button. */
  readonly of?: OneKey
  readonly hasPages?: boolean
}) {
  const { connections } = useLive()
  const isVisible = useVisible()
  const [isFollowed, setFollowed] = useState(of !== undefined)
  const [onlyDenied, setOnlyDenied] = useState(false)
  const [lines, setLines] = useState<readonly Line[]>([])
  const [lost, setLost] = useState(0)
  const [problem, setProblem] = useState<Error>()
  const [turn, setTurn] = useState(0)
  const number = useRef(0)

  useEffect(() => {
    setProblem(undefined)
    if (!isFollowed || !isVisible) return
    const gone = new AbortController()
    let fresh: Line[] = []
    const show = setInterval(() => {
      if (fresh.length === 0) return
      const shown = fresh.reverse()
      fresh = []
      setLines((last) => [...shown, ...last].slice(0, KEPT))
    }, SHOWN_EVERY_MS)
    const follow = async (): Promise<void> => {
      const query = new URLSearchParams({
        limiter,
        ...(of !== undefined && { key: of.key }),
        ...(onlyDenied && { denied: 'true' }),
      })
      for await (const { event, data } of events(`/v1/admin/tail?${query}`, gone.signal)) {
        const message = JSON.parse(data)
        if (event === 'lost') setLost((sum) => sum + message.lost)
        if (event === 'decision' && isOf(message, of))
          fresh = [...fresh, { ...message, number: ++number.current }].slice(-KEPT)
      }
      throw new Error('the stream has ended')
    }
    follow().catch((error) => gone.signal.aborted || setProblem(error))
    return () => {
      clearInterval(show)
      gone.abort()
    }
  }, [limiter, of?.key, of?.dimension, isFollowed, onlyDenied, connections, isVisible, turn])

  return (
    <section class="panel" aria-labelledby="tail">
      <div class="panel-head">
        <h2 id="tail">Live decisions</h2>
        <div class="actions">
          <label class="choice">
            <input
              type="checkbox"
              checked={onlyDenied}
              onChange={(event) => {
                setOnlyDenied(event.currentTarget.checked)
                setLines([])
              }}
            />
            Denials only
          </label>
          <button type="button" class="small" onClick={() => setFollowed(!isFollowed)}>
            {isFollowed ? 'Pause' : 'Follow'}
          </button>
        </div>
      </div>
      {problem !== undefined && <Problem error={problem} reload={() => setTurn(turn + 1)} />}
      {((isFollowed && problem === undefined) || lines.length > 0) && (
        <Table
          label="Decisions"
          columns={columnsOf(limiter, of, hasPages)}
          rows={lines}
          keyOf={(line) => `${line.number}`}
          pageSize={KEPT}
          empty="No decisions yet."
        />
      )}
      {lost > 0 && <p class="muted">{count(lost)} decisions were skipped.</p>}
    </section>
  )
}

/**
 * Whether a decision is about this key. The stream also contains decisions on the same key in other dimensions,
 * and long keys are shortened.
 */
function isOf({ key }: TailDecision, of: OneKey | undefined): boolean {
  if (of?.dimension === undefined || typeof key === 'string') return true
  const shown = key[of.dimension]
  return shown === of.key || (shown !== undefined && isCut(shown) && of.key.startsWith(shown.slice(0, 200)))
}

function columnsOf(limiter: string, of: OneKey | undefined, hasPages: boolean): readonly Column<Line>[] {
  const key: Column<Line> = {
    id: 'key',
    label: 'Key',
    cell: ({ key }) => <KeyLinks limiter={limiter} of={key} hasPages={hasPages} />,
  }
  return [
    { id: 'at', label: 'Time', cell: ({ atMs }) => timeOfDay(atMs) },
    // If there are no dimensions, every row has the same key.
    ...(of === undefined || of.dimension !== undefined ? [key] : []),
    { id: 'cost', label: 'Cost', cell: ({ cost }) => count(cost), isNumber: true, isMinor: true },
    { id: 'outcome', label: 'Outcome', cell: (line) => <Outcome {...line} /> },
    { id: 'remaining', label: 'Remaining', cell: ({ remaining }) => count(remaining), isNumber: true },
    {
      id: 'retry',
      label: 'Retry in',
      cell: ({ allowed, retryAfterMs }) => (allowed ? '' : duration(retryAfterMs)),
      isNumber: true,
    },
    { id: 'source', label: 'Decided by', cell: ({ source }) => source, isMinor: true },
  ]
}

function KeyLinks({
  limiter,
  of,
  hasPages,
}: {
  readonly limiter: string
  readonly of: TailDecision['key']
  readonly hasPages: boolean
}) {
  if (typeof of === 'string') return <KeyLink limiter={limiter} of={{ key: of }} hasPage={hasPages} />
  return (
    <>
      {Object.entries(of).map(([dimension, key]) => (
        <span key={dimension}>
          <KeyLink limiter={limiter} of={{ key, dimension }} hasPage={hasPages} />{' '}
        </span>
      ))}
    </>
  )
}

function Outcome({ allowed, deniedBy, shadowDeniedBy = [], blockedMs }: TailDecision) {
  return (
    <>
      {allowed ? <Badge tone="good">allowed</Badge> : <Badge tone="bad">denied</Badge>}{' '}
      <span class="muted">
        {deniedBy.length > 0 && `by ${deniedBy.join(', ')} `}
        {blockedMs !== undefined && `${blockInWords(blockedMs)} `}
        {shadowDeniedBy.length > 0 && `shadow: ${shadowDeniedBy.join(', ')}`}
      </span>
    </>
  )
}
