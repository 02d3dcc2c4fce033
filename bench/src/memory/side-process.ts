// One side in its own process, which is idle between its turns.

import { anyOf, callers, inTurn } from '../callers.ts'
import type { Policy } from '../peers/peer.ts'
import { serve } from '../workers.ts'
import { MEMORY_SIDES } from './sides.ts'

/** The first message opens a side. Later messages run a turn. */
export type ToSide =
  | { readonly side: string; readonly policy: Policy; readonly keys: number }
  /** Requests run for `leadMs` before the turn. */
  | { readonly leadMs: number; readonly turnMs: number }

/** CPU time of all threads per decision. It is 0 after a side was opened. */
export type CpuSeconds = number

/** Requests between two readings of the clock. */
const BATCH = 1000

let turn: (ms: number) => Promise<CpuSeconds>

serve<ToSide, CpuSeconds>(async (message) => {
  if ('side' in message) {
    turn = await open(message.side, message.policy, callers(message.keys))
    return 0
  }
  if (message.leadMs > 0) await turn(message.leadMs)
  return turn(message.turnMs)
})

async function open(side: string, policy: Policy, keys: readonly string[]): Promise<typeof turn> {
  const opened = MEMORY_SIDES.find(({ name }) => name === side)!.open(policy, keys)
  const pick = anyOf(keys.length)
  // Creates all keys before the first turn.
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
