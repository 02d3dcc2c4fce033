/** A request to write as a log line. */
export interface Entry {
  readonly timeMs: number
  readonly key: string
}

const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec']

/** `17/May/2015:10:05:03 +0000` */
export function accessLogTime(timeMs: number): string {
  const [date = '', clock = ''] = new Date(timeMs).toISOString().split(/[T.]/)
  const [year, month, day] = date.split('-')
  return `${day}/${MONTHS[Number(month) - 1]}/${year}:${clock} +0000`
}

export function commonLine({ timeMs, key }: Entry): string {
  return `${key} - - [${accessLogTime(timeMs)}] "GET /page?x=1 HTTP/1.1" 200 1234`
}

export function combinedLine(entry: Entry): string {
  return `${commonLine(entry)} "https://example.com/\\"quoted\\"" "Mozilla/5.0 (X11; Linux x86_64)"`
}

export function jsonLine({ timeMs, key }: Entry): string {
  return JSON.stringify({ time: new Date(timeMs).toISOString(), ip: key, status: 200 })
}

export function logOf(entries: readonly Entry[], line: (entry: Entry) => string): string {
  return entries.map((entry) => `${line(entry)}\n`).join('')
}

/** A fixed sequence of numbers in [0, 1), so that generated logs never change. */
export function randomSequence(seed: number): () => number {
  let state = seed
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 32
  }
}

/** Traffic of a few callers at whole seconds, with lines up to a minute late. */
export function generateEntries(count: number, seed = 1): Entry[] {
  const random = randomSequence(seed)
  const start = Date.UTC(2024, 1, 28, 23, 50)
  return Array.from({ length: count }, (_, i) => {
    const timeMs = start + Math.floor(i / 4 - random() * 60) * 1000
    return { timeMs, key: `192.0.2.${Math.floor(random() ** 2 * 20)}` }
  })
}

export interface Expected {
  admitted: number
  denied: number
  limits: { denied: number; fullestWindow: number }[]
}

/** Expected decisions, found by comparing every pair of requests. */
export function bruteForce(
  entries: readonly Entry[],
  limits: readonly { limit: number; windowMs: number }[],
  kind: 'sliding' | 'fixed',
): Expected {
  const admitted: Entry[] = []
  const deniedBy = limits.map(() => 0)
  let denied = 0
  for (const entry of entries.toSorted((a, b) => a.timeMs - b.timeMs)) {
    const full = limits.map(({ limit, windowMs }) => {
      const windowOf = (timeMs: number) => Math.floor(timeMs / windowMs)
      const counts = ({ timeMs, key }: Entry) =>
        key === entry.key &&
        (kind === 'fixed' ? windowOf(timeMs) === windowOf(entry.timeMs) : entry.timeMs - timeMs < windowMs)
      return admitted.filter(counts).length >= limit
    })
    full.forEach((isFull, i) => {
      if (isFull) deniedBy[i]!++
    })
    if (full.includes(true)) denied++
    else admitted.push(entry)
  }
  const fullest = limits.map(({ windowMs }) => fullestByBruteForce(admitted, windowMs))
  return {
    admitted: admitted.length,
    denied,
    limits: limits.map((_, i) => ({ denied: deniedBy[i]!, fullestWindow: fullest[i]! })),
  }
}

/** Tries a window from each request: a fullest window may always start at one. */
export function fullestByBruteForce(entries: readonly Entry[], windowMs: number): number {
  const within = (first: Entry) =>
    entries.filter(
      ({ timeMs, key }) => key === first.key && timeMs >= first.timeMs && timeMs < first.timeMs + windowMs,
    )
  return Math.max(0, ...entries.map((first) => within(first).length))
}
