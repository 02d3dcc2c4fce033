// Readers for untrusted JSON: each returns the value, or throws an error that describes what is allowed.

import { invalidOption, SlidegateError, show } from '../../errors.ts'

/** Reads a value. `what` is its name in errors. */
export type Read<Value = unknown> = (value: unknown, what: string) => Value

export function wrong(what: string, value: unknown, right: string): SlidegateError {
  return invalidOption(`${what} is ${show(value)}; it must be ${right}`, value)
}

/** Adds a value's position to errors. */
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
    throw wrong(what, value, `an object with only these fields: ${known.join(', ')}`)
  }
  for (const name of Object.keys(value)) {
    if (known.includes(name)) continue
    throw invalidOption(`${what} has ${show(name)}; it can only have ${known.join(', ')}`, name)
  }
  return value as Fields
}

type Shape = Readonly<Record<string, Read>>
export type ShapeOf<S extends Shape> = { readonly [Name in keyof S]: ReturnType<S[Name]> }

/** The fields of a shape that aren't undefined. */
export function readShape<S extends Shape>(fields: Fields, shape: S): ShapeOf<S> {
  const read: Record<string, unknown> = {}
  for (const [name, of] of Object.entries(shape)) {
    const value = of(fields[name], name)
    if (value !== undefined) read[name] = value
  }
  return read as ShapeOf<S>
}

/** An object with these fields and no others. */
export function shape<S extends Shape>(what: string, fields: S): Read<ShapeOf<S>> {
  return (value) => readShape(fieldsIn(value, what, Object.keys(fields)), fields)
}

export function listIn(value: unknown, what: string, least: number, most: number): readonly unknown[] {
  if (Array.isArray(value) && value.length >= least && value.length <= most) return value
  const given = Array.isArray(value) ? `an array of ${value.length}` : show(value)
  throw invalidOption(
    `${what} is ${given}; it must be an array of ${least === most ? most : `${least} to ${most}`}`,
    value,
  )
}

export function list<Value>(of: Read<Value>, least: number, most: number): Read<readonly Value[]> {
  return (value, what) => listIn(value, what, least, most).map((each) => of(each, what))
}

export function integer(least: number, most: number): Read<number> {
  return (value, what) => {
    if (Number.isSafeInteger(value) && (value as number) >= least && (value as number) <= most) {
      return value as number
    }
    throw wrong(what, value, `an integer from ${least} to ${most}`)
  }
}

export const whole: Read<number> = integer(0, Number.MAX_SAFE_INTEGER)

export const flag: Read<boolean> = (value, what) => {
  if (typeof value === 'boolean') return value
  throw wrong(what, value, 'true or false')
}

export function text(fits: (text: string) => boolean, right: string): Read<string> {
  return (value, what) => {
    if (typeof value === 'string' && fits(value)) return value
    throw wrong(what, value, right)
  }
}

export const anyText: Read<string> = text(() => true, 'a text')

export function maybe<Value>(of: Read<Value>): Read<Value | undefined> {
  return (value, what) => (value === undefined ? undefined : of(value, what))
}

/** Reads `null` as undefined, because JSON lists have no undefined. */
export function orNull<Value>(of: Read<Value>): Read<Value | undefined> {
  return (value, what) => (value === null ? undefined : of(value, what))
}
