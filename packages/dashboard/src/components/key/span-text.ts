/** A span as a configuration has it: `10m`, `1500ms`. Nothing where it is none. */
export function spanText(span: unknown): string {
  if (typeof span !== 'number') return typeof span === 'string' ? span : ''
  const unit = UNITS.find(([, ms]) => span >= ms && span % ms === 0)
  return unit === undefined ? `${span}ms` : `${span / unit[1]}${unit[0]}`
}

export function isSpan(text: string): boolean {
  return /^[0-9]{1,15}(ms|s|m|h|d)$/.test(text.trim())
}

const UNITS = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['m', 60_000],
  ['s', 1000],
] as const
