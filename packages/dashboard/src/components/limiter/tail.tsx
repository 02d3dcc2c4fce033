import { useEffect, useRef, useState } from 'preact/hooks'
import { events } from '../../api.ts'
import { count, duration, timeOfDay } from '../../format.ts'
import { useLive } from '../../live.tsx'
import { keyHref } from '../../place.ts'
import type { DecisionTold } from '../../told.ts'
import type { OneKey } from '../key/explained.ts'
import { Badge } from '../status.tsx'
import { type Column, Table } from '../table.tsx'

/** The last ones are kept, and shown so often. */
const KEPT = 30
const SHOWN_EVERY_MS = 500

interface Line extends DecisionTold {
  readonly number: number
}

/** Decisions as they happen. @param of of one key only, followed at once */
export function Tail({ limiter, of }: { readonly limiter: string; readonly of?: OneKey }) {
  const { connections } = useLive()
  const [isFollowed, setFollowed] = useState(of !== undefined)
  const [onlyDenied, setOnlyDenied] = useState(false)
  const [lines, setLines] = useState<readonly Line[]>([])
  const [lost, setLost] = useState(0)
  const number = useRef(0)

  useEffect(() => {
    if (!isFollowed) return
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
        const told = JSON.parse(data)
        if (event === 'lost') setLost((sum) => sum + told.lost)
        if (event === 'decision' && isOf(told, of))
          fresh = [...fresh, { ...told, number: ++number.current }].slice(-KEPT)
      }
    }
    follow().catch(() => {})
    return () => {
      clearInterval(show)
      gone.abort()
    }
  }, [limiter, of?.key, of?.dimension, isFollowed, onlyDenied, connections])

  return (
    <section class="panel" aria-labelledby="tail">
      <div class="panel-head">
        <h2 id="tail">Decisions as they happen</h2>
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
      {(isFollowed || lines.length > 0) && (
        <Table
          label="Decisions"
          columns={columnsOf(limiter, of)}
          rows={lines}
          keyOf={(line) => `${line.number}`}
          pageSize={KEPT}
          empty="Nothing was decided since."
        />
      )}
      {lost > 0 && <p class="muted">{count(lost)} more came than could be shown.</p>}
    </section>
  )
}

/** The service is asked for a key of any dimension. A long key is told as its beginning. */
function isOf({ key }: DecisionTold, of: OneKey | undefined): boolean {
  if (of?.dimension === undefined || typeof key === 'string') return true
  const told = key[of.dimension]
  return told === of.key || (told !== undefined && of.key.length > 200)
}

function columnsOf(limiter: string, of: OneKey | undefined): readonly Column<Line>[] {
  const key: Column<Line> = {
    ...{ id: 'key', label: 'Key', cell: ({ key }) => <KeyLinks limiter={limiter} of={key} /> },
  }
  return [
    { id: 'at', label: 'At', cell: ({ atMs }) => timeOfDay(atMs) },
    // Where there are no dimensions, it is the same in each line.
    ...(of === undefined || of.dimension !== undefined ? [key] : []),
    { id: 'cost', label: 'Cost', cell: ({ cost }) => count(cost), isNumber: true, isMinor: true },
    { id: 'outcome', label: 'Outcome', cell: (line) => <Outcome {...line} /> },
    { id: 'remaining', label: 'Remaining', cell: ({ remaining }) => count(remaining), isNumber: true },
    {
      id: 'retry',
      label: 'Again in',
      cell: ({ allowed, retryAfterMs }) => (allowed ? '' : duration(retryAfterMs)),
      isNumber: true,
    },
    { id: 'source', label: 'Decided by', cell: ({ source }) => source, isMinor: true },
  ]
}

function KeyLinks({ limiter, of }: { readonly limiter: string; readonly of: DecisionTold['key'] }) {
  if (typeof of === 'string') {
    return (
      <a class="mono" href={keyHref(limiter, of)}>
        {of}
      </a>
    )
  }
  return (
    <>
      {Object.entries(of).map(([dimension, key]) => (
        <span key={dimension}>
          <span class="muted">{dimension} </span>
          <a class="mono" href={keyHref(limiter, key, dimension)}>
            {key}
          </a>{' '}
        </span>
      ))}
    </>
  )
}

function Outcome({ allowed, deniedBy, shadowDeniedBy = [], blockedMs = 0 }: DecisionTold) {
  return (
    <>
      {allowed ? <Badge tone="good">allowed</Badge> : <Badge tone="bad">denied</Badge>}{' '}
      <span class="muted">
        {deniedBy.length > 0 && `by ${deniedBy.join(', ')} `}
        {blockedMs > 0 && `blocked for ${duration(blockedMs)} `}
        {shadowDeniedBy.length > 0 && `shadow: ${shadowDeniedBy.join(', ')}`}
      </span>
    </>
  )
}
