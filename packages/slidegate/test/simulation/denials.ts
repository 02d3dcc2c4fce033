import type { ConsumeOp } from '../../src/stores/store.ts'
import { type CallerRequest, wordsOf } from './caller-request.ts'
import { nameOf } from './server.ts'
import type { World } from './world.ts'

/**
 * Checks that the server would deny a request that the cache denied.
 * Room that this process can't know about yet is an exception.
 */
export function expectDenialIsRight(world: World, request: CallerRequest, op: ConsumeOp): void {
  const server = world.serverOf(request.key)
  if (!server.wouldAdmit(op)) return
  world.count('stale denials')
  const { process } = request.of
  const { executions, disturbedAtMs } = server
  const sinceMs = world.loop.nowMs - process.options.maxStaleMs - 1
  if (disturbedAtMs >= sinceMs) return
  const name = nameOf(op.parts[0]!)
  const ofKey = executions.filter(({ op: done, atMs }) => atMs >= sinceMs && nameOf(done.parts[0]!) === name)
  const lastRequest = ofKey.findLast(
    ({ op: done, by }) => by === process.number && done.type === 'consume' && done.cost === op.cost,
  )
  for (const { op: done, by, isHeard } of ofKey) {
    if (done.type !== 'refund' && done.type !== 'reset') continue
    const caller = by === process.number ? process.callerOf(done) : undefined
    if (caller === undefined) return
    // A refund or reset in this process is visible immediately. While it is in flight, a request may still be
    // answered with the state before.
    if (!isHeard && lastRequest !== undefined && lastRequest.atMs >= caller.atMs) return
  }
  world.violate(`${wordsOf(request)} was denied by the cache, but the server would admit it`)
}
