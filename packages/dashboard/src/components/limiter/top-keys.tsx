import { compact, count, duration } from '../../format.ts'
import type { TopKeyTold, TopTold } from '../../told.ts'
import type { Asked } from '../../use-ask.ts'
import { KeyLink } from '../key-link.tsx'
import { Answered } from '../status.tsx'
import { type Column, Table } from '../table.tsx'
import { FullestWindow } from './fullest-window.tsx'

const PAGE = 10

/** The keys that came most often, each with a link to its page. */
export function TopKeys({
  title,
  limiter,
  asked,
  unit,
  hasPages,
  showsUse = false,
}: {
  readonly title: string
  readonly limiter: string
  readonly asked: Asked<TopTold>
  /** What is counted. */
  readonly unit: string
  /** Whether keys have pages. */
  readonly hasPages: boolean
  /** Whether the fullest window of each key is told. */
  readonly showsUse?: boolean
}) {
  const id = `top-${unit.toLowerCase()}`
  const columns: Column<TopKeyTold>[] = [
    {
      id: 'key',
      label: 'Key',
      cell: (row) => <KeyLink limiter={limiter} of={row} hasPage={hasPages} />,
    },
    {
      id: 'count',
      label: unit,
      // What a sketch has counted is a range.
      cell: ({ count: most, error }) =>
        error === 0 ? count(most) : `${count(most - error)} to ${count(most)}`,
      isNumber: true,
    },
    ...(showsUse && hasPages
      ? [
          {
            id: 'use',
            label: 'Fullest limit now',
            cell: (row: TopKeyTold) => <FullestWindow limiter={limiter} of={row} />,
          },
        ]
      : []),
  ]
  return (
    <section class="panel" aria-labelledby={id}>
      <div class="panel-head">
        <h2 id={id}>{title}</h2>
        {asked.data !== undefined && (
          <span class="muted">
            {asked.data.overMs > 0 && `last ${duration(Math.ceil(asked.data.overMs / 1000) * 1000)}`}
            {asked.data.distinct !== undefined &&
              `, ≈ ${compact(asked.data.distinct)} ${asked.data.distinct === 1 ? 'caller' : 'callers'}`}
          </span>
        )}
      </div>
      <Answered asked={asked}>
        {({ keys }) => (
          <Table
            label={title}
            columns={columns}
            rows={keys}
            keyOf={({ dimension, key }) => `${dimension ?? ''}=${key}`}
            pageSize={PAGE}
            empty="Nobody in the last minutes."
          />
        )}
      </Answered>
    </section>
  )
}
