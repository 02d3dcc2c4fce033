import { InvalidArgumentError } from 'commander'
import { parseDuration } from '../duration.ts'

/** A whole number from 1, as an option has it. */
export function wholeNumber(text: string): number {
  if (/^[1-9]\d{0,15}$/.test(text) && Number.isSafeInteger(Number(text))) return Number(text)
  throw new InvalidArgumentError('It must be a whole number from 1.')
}

/** One from 1 to `most`. */
export function numberUpTo(most: number): (text: string) => number {
  return (text) => {
    const number = wholeNumber(text)
    if (number <= most) return number
    throw new InvalidArgumentError(`It must be a whole number from 1 to ${most}.`)
  }
}

/** A duration, as the service takes it. */
export function duration(text: string): string {
  if (parseDuration(text)) return text
  throw new InvalidArgumentError("It must be a duration such as '30s', '5m', '1h', '7d'.")
}

export function onOff(text: string): boolean {
  if (text === 'on' || text === 'off') return text === 'on'
  throw new InvalidArgumentError('It must be on or off.')
}

/** Of an option that may be given several times. */
export function collect(value: string, earlier: string[] = []): string[] {
  return [...earlier, value]
}
