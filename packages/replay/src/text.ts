// Formats numbers, times and untrusted text for a terminal.

// Control and formatting characters, unpaired surrogates, invisible characters and line separators could control a
// terminal or disguise text.
const UNPRINTABLE = /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu

/** Makes untrusted text safe to print, and cuts it to about `length` characters. */
export function printable(text: string, length = 100): string {
  const shortened = text.length > length ? `${text.slice(0, length)}...` : text
  return shortened.replace(UNPRINTABLE, escaped)
}

/** Formats a value as JSON that is safe to print, because unprintable characters are escaped. */
export function printableJson(value: unknown, indent = 2): string {
  return JSON.stringify(value, null, indent).replace(UNPRINTABLE, (character) =>
    character === '\n' ? '\n' : escaped(character),
  )
}

function escaped(character: string): string {
  return Array.from(
    { length: character.length },
    (_, i) => `\\u${character.charCodeAt(i).toString(16).padStart(4, '0')}`,
  ).join('')
}

/** Copies text, because a substring would keep the whole original string in memory. */
export function detached(text: string): string {
  return ` ${text}`.slice(1)
}

export function formatCount(count: number): string {
  return count.toLocaleString('en-US')
}

/** Formats a percentage such as `99.9%`, without needless decimals. Returns `-` if `whole` is 0. */
export function formatPercent(part: number, whole: number): string {
  if (whole === 0) return '-'
  return `${Number(((100 * part) / whole).toFixed(1))}%`
}

/** Aligns rows in columns. The first column is aligned to the left, all others to the right. */
export function alignColumns(rows: readonly (readonly string[])[], indent = '  '): string[] {
  const widths: number[] = []
  for (const row of rows)
    row.forEach((cell, i) => {
      widths[i] = Math.max(widths[i] ?? 0, cell.length)
    })
  return rows.map((row) => {
    const cells = row.map((cell, i) => (i === 0 ? cell.padEnd(widths[i]!) : cell.padStart(widths[i]!)))
    return `${indent}${cells.join('  ')}`.trimEnd()
  })
}

const UNIT_MS = { d: 86_400_000, h: 3_600_000, m: 60_000, s: 1000, ms: 1 } as const

/** Parses a duration such as `5m` to milliseconds. 0 needs no unit. Returns `undefined` if it is invalid. */
export function parseDuration(text: string): number | undefined {
  if (text === '0') return 0
  const match = /^(\d{1,9})(ms|s|m|h|d)$/.exec(text)
  return match === null ? undefined : Number(match[1]) * UNIT_MS[match[2] as keyof typeof UNIT_MS]
}

/** Formats a duration in its two largest units: `3d 11h`, `5m`, `1s 20ms`. */
export function formatDuration(ms: number): string {
  const parts: string[] = []
  let rest = ms
  for (const [unit, unitMs] of Object.entries(UNIT_MS)) {
    if (rest >= unitMs) parts.push(`${Math.floor(rest / unitMs)}${unit}`)
    rest %= unitMs
  }
  return parts.slice(0, 2).join(' ') || '0s'
}

/** Longer durations are rounded to whole seconds. */
const COARSE_MS = 10_000

/** Formats a duration. Rounds it up to whole milliseconds, or to whole seconds if it is long. */
export function formatRoughDuration(ms: number): string {
  return formatDuration(ms > COARSE_MS ? Math.ceil(ms / 1000) * 1000 : Math.ceil(ms))
}
