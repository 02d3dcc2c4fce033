import type { Limit } from '../../../src/index.ts'
import type { KindName } from '../declarations.ts'
import { logOf, type Ruled } from '../oracle.ts'

// Which logs are read beside those of the limits in force. All logs of a set hold the same requests, so of each set that was
// in force it is one: none where that set has charged the limit's own log; else one that is not charged any more, of
// the same kind if there is one, else one that keeps the times of charges, and of those the one of the longest window.

const KEEP_TIMES: readonly KindName[] = ['sliding', 'zset', 'stream', 'concurrency', 'distinct']
const SUMS: readonly KindName[] = [
  'sliding',
  'zset',
  'stream',
  'fixed',
  'calendar',
  'firstHit',
  'counter',
  'bucket',
]

export function withFormer(now: readonly Ruled[], sets: readonly (readonly Ruled[])[]): Ruled[] {
  const charged = new Set(now.map(logOf))
  const beside = (own: Ruled): Ruled[] => {
    if (own.limit.shadow) return []
    const found = sets.flatMap((set): Ruled[] => {
      const then = set.filter(({ limit }) => !limit.shadow)
      if (then.some((each) => logOf(each) === logOf(own))) return []
      const gone = then.filter((each) => !charged.has(logOf(each)) && countsAlike(each, own))
      const best = gone.toSorted((a, b) => likeness(b, own) - likeness(a, own) || longer(a, b))[0]
      return best === undefined ? [] : [best]
    })
    return [...new Map(found.map((each) => [logOf(each), each])).values()]
  }
  const besides = now.map(beside)
  return now.map((own, i) => ({
    ...own,
    formerly: besides[i]!.map((log) => {
      const windows = now.filter((_, j) => besides[j]!.some((each) => logOf(each) === logOf(log)))
      const lengths = new Set(windows.map(({ limit }) => limit.windowMs))
      return { log, asked: asked(log, own.limit, lengths.size) }
    }),
  }))
}

/** A log of sums tells of any window, one of entries of one at a time; any other only of its own. */
function asked({ kind, limit }: Ruled, own: Limit, windows: number): Limit {
  const tells = kind === 'sliding' || (KEEP_TIMES.includes(kind) && windows === 1)
  return tells ? { ...limit, windowMs: own.windowMs } : limit
}

/** Holders and values are counted apart from requests. */
function countsAlike(a: Ruled, b: Ruled): boolean {
  return a.kind === b.kind || (SUMS.includes(a.kind) && SUMS.includes(b.kind))
}

function likeness({ kind }: Ruled, own: Ruled): number {
  return (kindOf(kind) === kindOf(own.kind) ? 2 : 0) + (KEEP_TIMES.includes(kind) ? 1 : 0)
}

/** Fixed windows of the calendar and from the first hit are fixed windows. */
function kindOf(kind: KindName): KindName {
  return kind === 'firstHit' || kind === 'calendar' ? 'fixed' : kind
}

function longer(a: Ruled, b: Ruled): number {
  return b.limit.windowMs - a.limit.windowMs
}
