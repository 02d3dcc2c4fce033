import type { Figure, Unit } from '../scenario.ts'

const DECIMALS: Readonly<Record<Unit, number>> = {
  x: 2,
  '%': 1,
  bytes: 1,
  µs: 0,
  ms: 2,
  'per second': 0,
  'per 1,000': 1,
  'k instructions': 1,
}

export function measuredText({ value, unit }: Figure): string {
  return `${numberOf(value, unit)} ${unit}`
}

export function targetText({ target, unit }: Figure): string {
  if (target === undefined) return ''
  return 'atLeast' in target ? `>= ${target.atLeast} ${unit}` : `<= ${target.atMost} ${unit}`
}

/** Returns the lowest and the highest round. */
export function spreadText({ spread, unit }: Figure): string {
  if (spread === undefined || spread.length === 0) return ''
  return `${numberOf(Math.min(...spread), unit)} .. ${numberOf(Math.max(...spread), unit)}`
}

function numberOf(value: number, unit: Unit): string {
  return value.toFixed(DECIMALS[unit])
}
