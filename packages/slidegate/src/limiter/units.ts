import { SlidegateError, type SlidegateErrorCode, show } from '../errors.ts'

/** What a request costs, by its options: 1 unless told. */
export function parseCost(options: { readonly cost?: number } | undefined): number {
  if (options === undefined) return 1
  if (typeof options !== 'object' || options === null) {
    throw new SlidegateError('invalid_cost', `the options are ${show(options)}; write { cost: 1 }`, options)
  }
  return options.cost === undefined ? 1 : parseUnits(options.cost, 'invalid_cost')
}

/** A number of units as it was given; an error of this code unless it is an integer from `least`. */
export function parseUnits(units: unknown, code: SlidegateErrorCode, least = 1): number {
  if (!Number.isSafeInteger(units) || (units as number) < least) {
    throw new SlidegateError(
      code,
      `the units are ${show(units)}; they must be an integer from ${least}`,
      units,
    )
  }
  return units as number
}
