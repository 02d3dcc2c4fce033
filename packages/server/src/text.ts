// Control characters, unpaired surrogates, formatting, what is not shown, and line separators: whatever could steer a
// terminal or disguise a text.
const UNPRINTABLE = /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu

/** A text from a log as it may stand on a terminal: harmless, and no longer than `length` characters or so. */
export function printable(text: string, length = 100): string {
  const shortened = text.length > length ? `${text.slice(0, length)}...` : text
  return shortened.replace(UNPRINTABLE, escaped)
}

/** JSON with everything unprintable escaped: the same data, safe to show. */
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

export function formatCount(count: number): string {
  return count.toLocaleString('en-US')
}

/** `99.9%`, without decimals where there are none; `-` of nothing. */
export function formatPercent(part: number, whole: number): string {
  if (whole === 0) return '-'
  return `${Number(((100 * part) / whole).toFixed(1))}%`
}

/** Rows under each other in columns: the first to the left, the others to the right. */
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
