// The numbers for the limits in an outcome, three per limit, in one array: see `ConsumeOutcome.limits`.

export const PER_LIMIT = 3

export function usedOf(numbers: readonly number[], limit: number): number {
  return numbers[PER_LIMIT * limit]!
}

export function waitOf(numbers: readonly number[], limit: number): number {
  return numbers[PER_LIMIT * limit + 1]!
}

export function resetOf(numbers: readonly number[], limit: number): number {
  return numbers[PER_LIMIT * limit + 2]!
}

export function setUsed(numbers: number[], limit: number, units: number): void {
  numbers[PER_LIMIT * limit] = units
}

export function setWait(numbers: number[], limit: number, ms: number): void {
  numbers[PER_LIMIT * limit + 1] = ms
}

export function setReset(numbers: number[], limit: number, ms: number): void {
  numbers[PER_LIMIT * limit + 2] = ms
}

/** Returns the numbers for this many unused limits. */
export function unused(limits: number): number[] {
  // Most keys have one limit. The first push to an empty array would allocate room for 17 items.
  const numbers = limits > 0 ? [0, 0, 0] : []
  for (let i = numbers.length; i < PER_LIMIT * limits; i++) numbers.push(0)
  return numbers
}

/** Adds `agoMs` to each reset time that isn't 0. */
export function countFrom(numbers: number[], agoMs: number): void {
  for (let i = 0; PER_LIMIT * i < numbers.length; i++) {
    const resetMs = resetOf(numbers, i)
    if (resetMs > 0) setReset(numbers, i, resetMs + agoMs)
  }
}
