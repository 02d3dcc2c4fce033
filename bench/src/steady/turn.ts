import assert from 'node:assert/strict'
import type { Redis } from 'ioredis'
import { inTurn } from '../callers.ts'
import { closedLoop, type Load } from '../load.ts'
import { mainThreadSeconds } from '../redis/info.ts'
import type { Role } from '../report/plot.ts'
import { IN_FLIGHT, REQUESTS, type Traffic } from './traffic.ts'

export interface CpuTurn {
  /** CPU time of Redis per decision. */
  readonly seconds: number
  /** The used share of the windows, from 0 to 1. It is 1 if it doesn't apply. */
  readonly fullness: number
  readonly load: Load
}

export interface CpuSide {
  readonly name: string
  readonly role: Role
  turn(): Promise<CpuTurn>
  /** Decisions per call in the last turn. */
  batchSize(): number
  close(): void
}

/** Runs a turn over all keys. `ask` returns `[admitted, remaining]`. */
export async function turnOf(
  redis: Redis,
  traffic: Traffic,
  ask: (caller: number) => Promise<readonly [isAdmitted: boolean, remaining: number]>,
): Promise<CpuTurn> {
  const { outcome, limit, keys, requests = REQUESTS, inFlight = IN_FLIGHT } = traffic
  let admitted = 0
  let used = 0
  const check = ([isAdmitted, remaining]: readonly [boolean, number]) => {
    if (isAdmitted) admitted++
    used += limit - remaining
  }
  const before = await mainThreadSeconds(redis)
  const load = await closedLoop(inFlight, { requests }, { pick: inTurn(keys), ask, check })
  const seconds = ((await mainThreadSeconds(redis)) - before) / requests
  assert.equal(admitted, outcome === 'admitted' ? requests : 0, 'requests admitted')
  return { seconds, fullness: used / requests / limit, load }
}

/** Fails if windows ran empty. */
export function assertFull(turns: readonly CpuTurn[]): void {
  for (const { fullness } of turns) {
    const percent = Math.round(fullness * 100)
    assert(
      fullness > 0.5 && fullness <= 1,
      `Windows are ${percent}% full: the machine is too busy for steady traffic`,
    )
  }
}
