// A process of its own for each side: it runs when it gets a turn, and is idle in between.

import { anyOf, callers, inTurn } from '../callers.ts'
import type { Policy } from '../peers/peer.ts'
import { serve } from '../workers.ts'
import { MEMORY_SIDES } from './sides.ts'

/** Opens a side; from then on, asks for a turn. */
export type Asked =
  | { readonly side: string; readonly policy: Policy; readonly keys: number }
  /** Requests run for `leadMs` before the turn. */
  | { readonly leadMs: number; readonly turnMs: number }

/** CPU time per decision, of all threads of the process. 0 for a side that was opened. */
export type CpuSeconds = number

/** Requests between two looks at the clock. */
const BATCH = 1000

let turn: (ms: number) => Promise<CpuSeconds>

serve<Asked, CpuSeconds>(async (asked) => {
  if ('side' in asked) {
    turn = await open(asked.side, asked.policy, callers(asked.keys))
    return 0
  }
  if (asked.leadMs > 0) await turn(asked.leadMs)
  return turn(asked.turnMs)
})

async function open(side: string, policy: Policy, keys: readonly string[]): Promise<typeof turn> {
  const opened = MEMORY_SIDES.find(({ name }) => name === side)!.open(policy, keys)
  const pick = anyOf(keys.length)
  // From the first turn on, it holds all keys.
  if (keys.length > 1) await opened.decide(inTurn(keys.length), keys.length)
  return async (ms) => {
    const cpu = process.cpuUsage()
    const untilMs = performance.now() + ms
    let decisions = 0
    for (; performance.now() < untilMs; decisions += BATCH) await opened.decide(pick, BATCH)
    const { user, system } = process.cpuUsage(cpu)
    opened.verify?.()
    return (user + system) / 1e6 / decisions
  }
}
