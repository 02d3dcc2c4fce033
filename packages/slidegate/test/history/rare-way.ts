import type { Redis } from 'ioredis'
import type { CommandClient } from '../../src/stores/redis/index.ts'
// Some tests replace the script, so this imports the current one.
import { SCRIPT } from '../../src/stores/redis/script.generated.ts'

type Changes = readonly (readonly [from: string, to: string])[]

/** Disables the shortcuts. Every op takes the general path, and all window logs are written in the rare form. */
const RARE: Changes = [
  ['local read = ', 'op = op or { lease_ms = 0 }\nlocal read = '],
  ['is_rare = total > ', 'is_rare = true or total > '],
]

/** Makes each commit rewrite the whole log except its ring. Usually few commits do. */
const ANEW: Changes = [[' > stamp or keep ~= kept', ' > stamp or true']]

function changed(script: string, changes: Changes): string {
  return changes.reduce((text, [from, to]) => text.replace(from, () => to), script)
}

function clientWith(redis: Redis, changes: Changes): CommandClient {
  for (const [from] of changes) {
    if (SCRIPT.split(from).length !== 2) throw new Error(`Expected "${from}" exactly once in the script`)
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
        // The server was restarted and has lost the script.
        if (!/^NOSCRIPT/.test(String((error as Error).message))) throw error
        script = ''
        return await redis.call(name!, await load(), ...rest)
      }
    },
  }
}

/** Creates a client that runs the script without its shortcuts for common ops. */
export const rareWayClient = (redis: Redis): CommandClient => clientWith(redis, RARE)

/** Creates a client whose script rewrites the whole log each time. */
export const anewClient = (redis: Redis): CommandClient => clientWith(redis, ANEW)
