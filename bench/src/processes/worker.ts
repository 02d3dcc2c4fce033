import { callers } from '../callers.ts'
import { evalshaFloor } from '../redis/floor.ts'
import { FIXED_WINDOW } from '../redis/scripts.ts'
import { connect } from '../redis/with-redis.ts'
import { floorSide, peerSide, type Side, slidegateSide } from '../sides.ts'
import { serve } from '../workers.ts'
import { IN_FLIGHT, KEYS, POLICY, type ToWorker, type WorkersLoad } from './messages.ts'

const sides = new Map<string, Side>()

serve<ToWorker, WorkersLoad>(async (message) => {
  if ('url' in message) {
    const redis = connect(message.url)
    const keys = callers(KEYS)
    const fixed = await FIXED_WINDOW.open(redis, POLICY)
    for (const side of [
      await slidegateSide(redis, POLICY, keys, 'admitted', { isShared: true }),
      floorSide(await evalshaFloor(redis), keys),
      await peerSide(FIXED_WINDOW.name, fixed, POLICY, keys, 'admitted'),
    ]) {
      sides.set(side.name, side)
    }
    return { requests: 0, seconds: 0 }
  }
  const { requests, seconds } = await sides.get(message.side)!.load(IN_FLIGHT, { ms: message.ms })
  return { requests, seconds }
})
