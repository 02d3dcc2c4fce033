import type { Redis } from 'ioredis'
import type { CommandClient } from '../../src/stores/redis/index.ts'
// Whichever is in use: some tests exchange it.
import { SCRIPT } from '../../src/stores/redis/script.generated.ts'

type Changes = readonly (readonly [from: string, to: string])[]

/** Makes the usual the rare. Every op is handled as an unusual one, and the tables of rare operations write every log of windows. */
const RARE: Changes = [
  ['local read = ', 'op = op or { lease_ms = 0 }\nlocal read = '],
  ['is_rare = total > ', 'is_rare = true or total > '],
]

/** Makes each commit write all of a log but the ring. Usually few do. */
const ANEW: Changes = [[' > stamp or keep ~= kept', ' > stamp or true']]

function changed(script: string, changes: Changes): string {
  return changes.reduce((text, [from, to]) => text.replace(from, () => to), script)
}

function clientWith(redis: Redis, changes: Changes): CommandClient {
  for (const [from] of changes) {
    if (SCRIPT.split(from).length !== 2) throw new Error(`the script does not have "${from}" just once`)
  }
  let script = ''
  let sha1: Promise<unknown>
  const load = () => {
    if (script !== SCRIPT) {
      script = SCRIPT
      sha1 = redis.script('LOAD', changed(script, changes))
    }
    return sha1 as Promise<string>
  }
  return {
    async command([name, , ...rest]) {
      try {
        return await redis.call(name!, await load(), ...rest)
      } catch (error) {
        // It was started again.
        if (!/^NOSCRIPT/.test(String((error as Error).message))) throw error
        script = ''
        return await redis.call(name!, await load(), ...rest)
      }
    },
  }
}

/** A client that runs the script without its shortcuts for usual ops. */
export const rareWayClient = (redis: Redis): CommandClient => clientWith(redis, RARE)

/** A client whose script writes the whole log each time. */
export const anewClient = (redis: Redis): CommandClient => clientWith(redis, ANEW)
