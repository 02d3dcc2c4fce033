import type { AnyKey, Limiter, Override } from '../../src/index.ts'

/** Returns all overrides of a limiter. */
export async function listed<Key extends AnyKey>(limiter: Limiter<Key>): Promise<Override[]> {
  const overrides: Override[] = []
  for await (const override of limiter.overrides.list()) overrides.push(override)
  return overrides
}
