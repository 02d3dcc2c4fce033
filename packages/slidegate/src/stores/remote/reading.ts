// Readers for untrusted JSON: each returns the value, or throws an error that describes what is allowed.

import { checkThat, invalidOption, SlidegateError, show, wrongValue } from '../../errors.ts'

/** Reads a value. `what` is the value's name in errors. */
export type Read<Value = unknown> = (value: unknown, what: string) => Value

/** Adds a value's position to errors from `read`. */
export function at<Value>(place: string, read: () => Value): Value {
  try {
    return read()
  } catch (error) {
    if (!(error instanceof SlidegateError)) throw error
    throw new SlidegateError(error.code, `${place}: ${error.message}`, error.value)
  }
}

export type Fields = Readonly<Record<string, unknown>>

export function fieldsIn(value: unknown, what: string, known: readonly string[]): Fields {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw wrongValue(what, value, `an object with only these fields: ${known.join(', ')}`)
  }
  for (const name of Object.keys(value)) {
    if (known.includes(name)) continue
    throw invalidOption(`${what} has ${show(name)}; it can only have ${known.join(', ')}`, name)
  }
  return value as Fields
}

type Shape = Readonly<Record<string, Read>>
type ShapeOf<S extends Shape> = { readonly [Name in keyof S]: ReturnType<S[Name]> }

/** Reads an object with only these fields. Omits undefined fields. */
export function shape<S extends Shape>(what: string, fields: S): Read<ShapeOf<S>> {
  return (value) => {
    const given = fieldsIn(value, what, Object.keys(fields))
    const read: Record<string, unknown> = {}
    for (const [name, of] of Object.entries(fields)) {
      const field = of(given[name], name)
      if (field !== undefined) read[name] = field
    }
    return read as ShapeOf<S>
  }
}

export function listIn(
  value: unknown,
  what: string,
  least: number,
  most: number = least,
): readonly unknown[] {
  const isRight = Array.isArray(value) && value.length >= least && value.length <= most
  checkThat(isRight, what, value, `an array of ${least === most ? most : `${least} to ${most}`}`)
  return value as readonly unknown[]
}

export function list<Value>(of: Read<Value>, least: number, most: number = least): Read<readonly Value[]> {
  return (value, what) => listIn(value, what, least, most).map((each) => of(each, what))
}

/** Reads a value for which `fits` returns true. `right` describes allowed values. */
export function fitting<Value>(fits: (value: unknown) => boolean, right: string): Read<Value> {
  return (value, what) => {
    checkThat(fits(value), what, value, right)
    return value as Value
  }
}

export function integer(least: number, most: number): Read<number> {
  const isIn = (value: unknown) => Number(value) >= least && Number(value) <= most
  return fitting((value) => Number.isSafeInteger(value) && isIn(value), `an integer from ${least} to ${most}`)
}

export const whole: Read<number> = integer(0, Number.MAX_SAFE_INTEGER)

export const flag: Read<boolean> = fitting((value) => typeof value === 'boolean', 'true or false')

export function text(fits: (text: string) => boolean, right: string): Read<string> {
  return fitting((value) => typeof value === 'string' && fits(value), right)
}

export const anyText: Read<string> = text(() => true, 'a string')

export function maybe<Value>(of: Read<Value>): Read<Value | undefined> {
  return (value, what) => (value === undefined ? undefined : of(value, what))
}

/** Reads `null` as undefined, because JSON lists have no undefined. */
export function orNull<Value>(of: Read<Value>): Read<Value | undefined> {
  return (value, what) => (value === null ? undefined : of(value, what))
}
