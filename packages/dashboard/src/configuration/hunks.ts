import type { DiffLine } from '../../../server/src/admin/overview.ts'

/** Lines that belong together, and how many were left out before them, because nothing changes there. */
export interface Hunk {
  readonly leftOut: number
  /** The place of its first line. */
  readonly from: number
  readonly lines: readonly DiffLine[]
}

/** Lines that are the same, shown before and after a change. */
const CONTEXT = 3

/** What changes, with some lines around it. The last hunk may have no lines, where some are left out after all changes. */
export function hunksOf(lines: readonly DiffLine[]): Hunk[] {
  const isNear = (_line: DiffLine, i: number) =>
    lines.slice(Math.max(0, i - CONTEXT), i + CONTEXT + 1).some(({ kind }) => kind !== 'same')
  const near = lines.map(isNear)
  const hunks: Hunk[] = []
  for (let at = 0; at < lines.length; ) {
    const from = near.indexOf(true, at)
    if (from === -1) return [...hunks, { leftOut: lines.length - at, from: lines.length, lines: [] }]
    const next = near.indexOf(false, from)
    const to = next === -1 ? lines.length : next
    hunks.push({ leftOut: from - at, from, lines: lines.slice(from, to) })
    at = to
  }
  return hunks
}
