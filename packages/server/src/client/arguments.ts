// Parses command-line arguments: keys, numbers, durations.

import { InvalidArgumentError } from 'commander'
import { UsageError } from '../../../replay/src/errors.ts'
import { parseDuration, printable } from '../../../replay/src/text.ts'

/** A key, in the form that the service accepts. */
export type KeyBody = string | Record<string, string | null>

const DIMENSION = /^([A-Za-z0-9_-]{1,64})=(.*)$/s

/**
 * Parses a key: one argument, or `user=42 address=192.0.2.7` for a limiter with dimensions.
 *
 * `user=` means that the request has no key in that dimension.
 *
 * @param literal the value of `--key`, used as is
 * @throws {UsageError}
 */
export function keyOf(words: readonly string[], literal: string | undefined): KeyBody {
  if (literal !== undefined) {
    if (words.length > 0) throw new UsageError('got both a key and --key; use only one of them')
    return literal
  }
  const [first] = words
  if (first === undefined) throw new UsageError('missing key')
  const dimensions = words.map((word) => DIMENSION.exec(word))
  if (dimensions.every((match) => match !== null)) {
    const keys = dimensions.map(([, name, key]) => [name!, key || null] as const)
    if (new Set(keys.map(([name]) => name)).size < keys.length)
      throw new UsageError('a dimension appears twice in the key; write each dimension once')
    return Object.fromEntries(keys)
  }
  if (words.length === 1) return first
  const wrong = printable(words.find((word) => !DIMENSION.test(word))!)
  throw new UsageError(
    `"${wrong}" isn't of the form name=value; write a key with dimensions as user=42 address=192.0.2.7`,
  )
}

/** Formats a key for people. The result is safe to print on a terminal. */
export function keyText(key: KeyBody): string {
  if (typeof key === 'string') return printable(key)
  return Object.entries(key)
    .map(([dimension, each]) => `${printable(dimension)}=${printable(each ?? '')}`)
    .join(' ')
}

/** Parses an option as a positive integer. */
export function wholeNumber(text: string): number {
  if (/^[1-9]\d{0,15}$/.test(text) && Number.isSafeInteger(Number(text))) return Number(text)
  throw new InvalidArgumentError('It must be a positive integer.')
}

/** Returns a parser for integers from 1 to `most`. */
export function numberUpTo(most: number): (text: string) => number {
  return (text) => {
    const number = wholeNumber(text)
    if (number <= most) return number
    throw new InvalidArgumentError(`It must be an integer from 1 to ${most}.`)
  }
}

/** Checks a duration, and returns it unchanged, because the service parses it. */
export function duration(text: string): string {
  if (parseDuration(text)) return text
  throw new InvalidArgumentError("It must be a duration such as '30s', '5m', '1h' or '7d'.")
}

export function onOff(text: string): boolean {
  if (text === 'on' || text === 'off') return text === 'on'
  throw new InvalidArgumentError('It must be on or off.')
}

/** Collects the values of a repeatable option. */
export function collect(value: string, earlier: string[] = []): string[] {
  return [...earlier, value]
}
