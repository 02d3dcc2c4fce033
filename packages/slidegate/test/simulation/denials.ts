import type { ConsumeOp } from '../../src/stores/store.ts'
import { type Asked, wordsOf } from './asked.ts'
import { nameOf } from './server.ts'
import type { World } from './world.ts'

/**
 * A denial that is repeated in this process: the server would deny it, too, unless something has made room that the process
 * cannot have seen yet.
 */
export function expectDenialIsRight(world: World, asked: Asked, op: ConsumeOp): void {
  const server = world.serverOf(asked.key)
  if (!server.wouldAdmit(op)) return
  world.count('stale denials')
  const { process } = asked.of
  const { executions, disturbedAtMs } = server
  const sinceMs = world.loop.nowMs - process.options.maxStaleMs - 1
  if (disturbedAtMs >= sinceMs) return
  const name = nameOf(op.parts[0]!)
  const ofKey = executions.filter(({ op: done, atMs }) => atMs >= sinceMs && nameOf(done.parts[0]!) === name)
  const lastAsked = ofKey.findLast(
    ({ op: done, by }) => by === process.number && done.type === 'consume' && done.cost === op.cost,
  )
  for (const { op: done, by, isHeard } of ofKey) {
    if (done.type !== 'refund' && done.type !== 'reset') continue
    const caller = by === process.number ? process.callerOf(done) : undefined
    if (caller === undefined) return
    // Made here it shows at once. While it is on its way, what is asked may be answered from before it.
    if (!isHeard && lastAsked !== undefined && lastAsked.atMs >= caller.atMs) return
  }
  world.violate(`${wordsOf(asked)} is denied from the cache, and the server would admit it`)
}
