import {
  type Allocated,
  BOUNDS,
  measureAllocations,
} from '../../../packages/slidegate/test/cost/allocations.ts'
import type { Figure, Scenario } from '../scenario.ts'

export const allocations: Scenario = {
  name: 'allocations',
  title: 'Bytes allocated by the client per decision, and Redis calls per 1,000 decisions',
  // Repeated runs differ by 2%, so there is one round in both modes.
  async run() {
    return Object.entries(await measureAllocations()).flatMap(([name, figure]) => figuresOf(name, figure))
  },
}

function figuresOf(name: string, { bytes, calls }: Allocated): Figure[] {
  const bound = BOUNDS[name]!
  const allocated: Figure = {
    name: `${name}: allocated`,
    value: bytes,
    unit: 'bytes',
    target: { atMost: bound.bytes },
    raw: { bytes: [bytes] },
  }
  if (calls === undefined) return [allocated]
  const called: Figure = {
    name: `${name}: Redis calls`,
    value: 1000 * calls,
    unit: 'per 1,000',
    target: { atMost: 1000 * bound.calls! },
    raw: { callsPerThousand: [1000 * calls] },
  }
  return [allocated, called]
}
