// Tables with sorting, filtering and paging.

import type { ComponentChildren } from 'preact'
import { useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks'
import { count } from '../format.ts'
import { useUniqueId } from './unique-id.ts'

export interface Column<Row> {
  readonly id: string
  readonly label: string
  /** Renders a cell. Cells in the first column are row headings. */
  readonly cell: (row: Row) => ComponentChildren
  /** Makes the column sortable. The first click sorts numbers in descending order. */
  readonly sort?: (row: Row) => number | string
  /** Aligns the column to the right. */
  readonly isNumber?: boolean
  /** Hides the column on small screens. */
  readonly isMinor?: boolean
}

export function Table<Row>({
  label,
  columns,
  rows,
  keyOf,
  sortedBy,
  filterBy,
  filterLabel = 'Filter',
  pageSize = 25,
  empty = 'No entries.',
}: {
  /** The table's name for screen readers. */
  readonly label: string
  readonly columns: readonly Column<Row>[]
  readonly rows: readonly Row[]
  readonly keyOf: (row: Row) => string
  /** The id of the column by which the table is sorted initially. Default: the order of `rows`. */
  readonly sortedBy?: string
  /** The text that the filter searches. Default: no filter. */
  readonly filterBy?: (row: Row) => string
  readonly filterLabel?: string
  readonly pageSize?: number
  /** The text to show if there are no rows. */
  readonly empty?: string
}) {
  const [sorting, setSorting] = useState({ by: sortedBy, isTurned: false })
  const [filter, setFilter] = useState('')
  const [page, setPage] = useState(0)
  const [isHeld, setHeld] = useState(false)
  const [isWide, setWide] = useState(false)
  const order = useRef<ReadonlyMap<string, number>>(new Map())
  const scrolled = useRef<HTMLDivElement>(null)
  const id = useUniqueId()

  const found = useMemo(() => {
    const wanted = filter.trim().toLowerCase()
    if (filterBy === undefined || wanted === '') return rows
    return rows.filter((row) => filterBy(row).toLowerCase().includes(wanted))
  }, [rows, filter, filterBy])

  const sorted = useMemo(() => {
    const by = columns.find((column) => column.id === sorting.by)?.sort
    if (by === undefined) return found
    const places = order.current
    // Rows stay in place while the pointer or the focus is on the table.
    const compare = isHeld
      ? (a: Row, b: Row) => (places.get(keyOf(a)) ?? places.size) - (places.get(keyOf(b)) ?? places.size)
      : (a: Row, b: Row) => compared(by(a), by(b)) * (sorting.isTurned ? -1 : 1)
    return found.toSorted(compare)
  }, [found, columns, sorting, isHeld, keyOf])
  if (!isHeld) order.current = new Map(sorted.map((row, i) => [keyOf(row), i]))

  useLayoutEffect(() => {
    const element = scrolled.current!
    const observer = new ResizeObserver(() => setWide(element.scrollWidth > element.clientWidth))
    observer.observe(element)
    observer.observe(element.firstElementChild!)
    return () => observer.disconnect()
  }, [])

  const pages = Math.max(1, Math.ceil(sorted.length / pageSize))
  const at = Math.min(page, pages - 1)
  const shown = sorted.slice(at * pageSize, (at + 1) * pageSize)

  const sort = (column: string): void => {
    setSorting(({ by, isTurned }) => ({ by: column, isTurned: by === column && !isTurned }))
    setHeld(false)
    setPage(0)
  }

  return (
    <>
      {filterBy !== undefined && rows.length > 1 && (
        <div class="table-head">
          <input
            type="search"
            aria-label={filterLabel}
            placeholder={filterLabel}
            value={filter}
            onInput={(event) => {
              setFilter(event.currentTarget.value)
              setPage(0)
            }}
          />
          <span class="muted" role="status">
            {found.length === rows.length
              ? `${count(rows.length)} in total`
              : `${count(found.length)} of ${count(rows.length)}`}
          </span>
        </div>
      )}
      {/* An element that scrolls must be reachable with the keyboard. */}
      <div
        ref={scrolled}
        class="scrolled"
        {...(isWide && { role: 'group', 'aria-labelledby': id, tabIndex: 0 })}
      >
        <table>
          <caption class="hidden" id={id}>
            {label}
          </caption>
          <thead>
            <tr>
              {columns.map(({ id, label, sort: by, isNumber, isMinor }) => (
                <th
                  key={id}
                  scope="col"
                  class={classOf({ isNumber, isMinor })}
                  aria-sort={
                    by && sorting.by === id ? directionOf(shown[0], by, sorting.isTurned) : undefined
                  }
                >
                  {by === undefined ? (
                    label
                  ) : (
                    <button type="button" onClick={() => sort(id)}>
                      {label}
                    </button>
                  )}
                </th>
              ))}
            </tr>
          </thead>
          <tbody
            onPointerEnter={() => setHeld(true)}
            onPointerLeave={() => setHeld(false)}
            onFocusIn={() => setHeld(true)}
            onFocusOut={() => setHeld(false)}
          >
            {shown.map((row) => (
              <tr key={keyOf(row)}>
                {columns.map(({ id, cell, isNumber, isMinor }, i) =>
                  i === 0 ? (
                    <th key={id} scope="row" class={classOf({ isNumber, isMinor })}>
                      {cell(row)}
                    </th>
                  ) : (
                    <td key={id} class={classOf({ isNumber, isMinor })}>
                      {cell(row)}
                    </td>
                  ),
                )}
              </tr>
            ))}
            {shown.length === 0 && (
              <tr>
                <td colSpan={columns.length} class="muted">
                  {rows.length === 0 ? empty : 'Nothing matches the filter.'}
                </td>
              </tr>
            )}
          </tbody>
        </table>
      </div>
      {pages > 1 && (
        <nav class="table-foot" aria-label={`Pages of ${label}`}>
          <span class="muted">
            {at * pageSize + 1} to {at * pageSize + shown.length} of {count(sorted.length)}
          </span>
          <div class="actions">
            <button type="button" disabled={at === 0} onClick={() => setPage(at - 1)}>
              Previous
            </button>
            <button type="button" disabled={at === pages - 1} onClick={() => setPage(at + 1)}>
              Next
            </button>
          </div>
        </nav>
      )}
    </>
  )
}

/** Sorts numbers in descending order, and strings alphabetically. */
function compared(a: number | string, b: number | string): number {
  if (typeof a === 'number' && typeof b === 'number') return b - a
  return String(a).localeCompare(String(b), 'en', { numeric: true })
}

function directionOf<Row>(
  row: Row | undefined,
  by: (row: Row) => number | string,
  isTurned: boolean,
): 'ascending' | 'descending' {
  const isDown = row !== undefined && typeof by(row) === 'number'
  return isDown === isTurned ? 'ascending' : 'descending'
}

function classOf({ isNumber, isMinor }: { isNumber?: boolean; isMinor?: boolean }): string | undefined {
  return [isNumber && 'number', isMinor && 'minor'].filter(Boolean).join(' ') || undefined
}
