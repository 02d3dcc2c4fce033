// Reads JSON that others wrote: objects, lists, integers, flags, texts.

import { invalidOption, SlidegateError, show } from '../../errors.ts'

// How either side reads what the other has written: whole, or not at all.

/** `invalid_option`: what is wrong, and what would be right. */
export function wrong(what: string, value: unknown, right: string): SlidegateError {
  return invalidOption(`${what} is ${show(value)}; it must be ${right}`, value)
}

/** Says where it was read. */
export function at<Value>(place: string, read: () => Value): Value {
  try {
    return read()
  } catch (error) {
    if (!(error instanceof SlidegateError)) throw error
    throw new SlidegateError(error.code, `${place}: ${error.message}`, error.value)
  }
}

export type Fields = Readonly<Record<string, unknown>>

/** An object that has no other fields than these. */
export function fieldsIn(value: unknown, what: string, known: readonly string[]): Fields {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw wrong(what, value, `an object of ${known.join(', ')}`)
  }
  for (const name of Object.keys(value)) {
    if (known.includes(name)) continue
    throw invalidOption(`${what} has ${show(name)}; there is only ${known.join(', ')}`, name)
  }
  return value as Fields
}

export function listIn(value: unknown, what: string, least: number, most: number): readonly unknown[] {
  if (Array.isArray(value) && value.length >= least && value.length <= most) return value
  const given = Array.isArray(value) ? `an array of ${value.length}` : show(value)
  throw invalidOption(`${what} is ${given}; it must be an array of ${least} to ${most}`, value)
}

export function integerIn(value: unknown, what: string, least: number, most: number): number {
  if (Number.isSafeInteger(value) && (value as number) >= least && (value as number) <= most) {
    return value as number
  }
  throw wrong(what, value, `an integer from ${least} to ${most}`)
}

export function flagIn(value: unknown, what: string): boolean {
  if (typeof value === 'boolean') return value
  throw wrong(what, value, 'true or false')
}

export function textIn(value: unknown, what: string, fits: (text: string) => boolean, right: string): string {
  if (typeof value === 'string' && fits(value)) return value
  throw wrong(what, value, right)
}
