// Detects a replay that skipped nearly all lines, usually because of a wrong option.

import { formatCount } from '../text.ts'
import type { Skipped } from './parse-line.ts'

/** The share of lines that must be usable. Many logs have lines that aren't requests, or requests without a user. */
const USABLE = 0.01

/** Returns the problem if nearly all lines were skipped. An empty log is fine. */
export function unusableLog(requests: number, { reasons }: Skipped): string | undefined {
  const counted = Array.from(reasons)
    // If `--limiter` is set, most lines may belong to other limiters.
    .filter(([reason]) => reason !== 'empty line' && (reason !== 'another limiter' || requests === 0))
    .sort(([, a], [, b]) => b - a)
  const skipped = counted.reduce((sum, [, count]) => sum + count, 0)
  const [most] = counted
  if (most === undefined || requests >= USABLE * (requests + skipped)) return undefined
  const share = `${formatCount(skipped)} of ${formatCount(requests + skipped)} lines were skipped`
  return `${share}, mostly for this reason: ${most[0]}; check ${optionsFor(most[0])}`
}

function optionsFor(reason: string): string {
  if (reason === 'too late') return '--reorder'
  if (reason === 'another limiter') return '--limiter'
  if (reason.startsWith('no readable time')) return '--time-field and --format'
  if (reason.startsWith('no cost')) return '--cost-field'
  return reason.startsWith('no ') ? '--key and --format' : '--format'
}
