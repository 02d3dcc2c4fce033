const UNIT_MS = { d: 86_400_000, h: 3_600_000, m: 60_000, s: 1000, ms: 1 } as const

/** `5m` in milliseconds; 0 needs no unit. `undefined` where the text is no duration. */
export function parseDuration(text: string): number | undefined {
  if (text === '0') return 0
  const match = /^(\d{1,9})(ms|s|m|h|d)$/.exec(text)
  return match === null ? undefined : Number(match[1]) * UNIT_MS[match[2] as keyof typeof UNIT_MS]
}

/** In its two largest units: `3d 11h`, `5m`, `1s 20ms`. */
export function formatDuration(ms: number): string {
  const parts: string[] = []
  let rest = ms
  for (const [unit, unitMs] of Object.entries(UNIT_MS)) {
    if (rest >= unitMs) parts.push(`${Math.floor(rest / unitMs)}${unit}`)
    rest %= unitMs
  }
  return parts.slice(0, 2).join(' ') || '0s'
}
