// Words of the command line, checked: keys, numbers, durations.

import { InvalidArgumentError } from 'commander'
import { UsageError } from '#replay/errors.js'
import { parseDuration, printable } from '#replay/text.js'

/** A key as the service takes it. */
export type KeyBody = string | Record<string, string | null>

const DIMENSION = /^([A-Za-z0-9_-]{1,64})=(.*)$/s

/**
 * A key as it is typed: one word, or `user=42 address=192.0.2.7` for a limiter with dimensions, with nothing behind `=`
 * where the request has none.
 *
 * @param literal a key that is taken as it is
 * @throws {UsageError}
 */
export function keyOf(words: readonly string[], literal: string | undefined): KeyBody {
  if (literal !== undefined) {
    if (words.length > 0) throw new UsageError('both a key and --key are given; give one of them')
    return literal
  }
  const [first] = words
  if (first === undefined) throw new UsageError('a key is missing')
  const dimensions = words.map((word) => DIMENSION.exec(word))
  if (dimensions.every((match) => match !== null)) {
    const keys = dimensions.map(([, name, key]) => [name!, key || null] as const)
    if (new Set(keys.map(([name]) => name)).size < keys.length)
      throw new UsageError('a dimension is given twice')
    return Object.fromEntries(keys)
  }
  if (words.length === 1) return first
  const wrong = printable(words.find((word) => !DIMENSION.test(word))!)
  throw new UsageError(`"${wrong}" is no dimension of a key; write several like user=42 address=192.0.2.7`)
}

/** A key as people read it, safe on a terminal. */
export function keyText(key: KeyBody): string {
  if (typeof key === 'string') return printable(key)
  return Object.entries(key)
    .map(([dimension, each]) => `${printable(dimension)}=${printable(each ?? '')}`)
    .join(' ')
}

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
