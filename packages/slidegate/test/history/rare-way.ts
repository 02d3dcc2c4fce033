import type { Redis } from 'ioredis'
import type { CommandClient } from '../../src/stores/redis/index.ts'
import { SCRIPT } from '../../src/stores/redis/script.generated.ts'

/** What makes the usual the rare: every op is looked at as an unusual one, and the tables of rare operations write every log of windows. */
const CHANGES: readonly (readonly [from: string, to: string])[] = [
  ['local is_plain = ', 'op = op or { lease_ms = 0 }\nlocal is_plain = false and '],
  ['local is_rare, is_restamped = ', 'local is_rare, is_restamped = true or '],
]

/** The script as it would be without its ways for what is usual. */
function withoutUsualWays(script: string): string {
  return CHANGES.reduce((changed, [from, to]) => {
    if (changed.split(from).length !== 2) throw new Error(`the script does not have "${from}" just once`)
    return changed.replace(from, to)
  }, script)
}

/** A client that runs this script. */
export async function rareWayClient(redis: Redis): Promise<CommandClient> {
  const sha1 = (await redis.script('LOAD', withoutUsualWays(SCRIPT))) as string
  return {
    command: ([name, , ...rest]) => redis.call(name!, sha1, ...rest),
  }
}
