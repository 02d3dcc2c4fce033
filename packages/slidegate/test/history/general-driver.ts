import type { Redis } from 'ioredis'
import type { CommandClient } from '../../src/stores/redis/index.ts'
import { SCRIPT } from '../../src/stores/redis/script.generated.ts'

/** A client that runs the script without its short cut for the usual op: all is left to the general driver. */
export async function generalDriverClient(redis: Redis): Promise<CommandClient> {
  const general = SCRIPT.replace('local filled_alone = ', 'local filled_alone = false and ')
  if (general === SCRIPT) throw new Error('the script has no short cut of this name any more')
  const sha1 = (await redis.script('LOAD', general)) as string
  return {
    command: ([name, , ...rest]) => redis.call(name!, sha1, ...rest),
  }
}
