import type { Redis } from 'ioredis'
import type { CommandClient } from '../../src/stores/redis/index.ts'
import { SCRIPT } from '../../src/stores/redis/script.generated.ts'

/** The script without its short cut for the usual op: all is left to the general driver. */
export function withoutShortCut(script: string): string {
  const general = script.replace('admitted, now_filled = decide(', 'admitted, now_filled = nil and decide(')
  if (general === script) throw new Error('the script has no short cut of this name any more')
  return general
}

/** A client that runs this script. */
export async function generalDriverClient(redis: Redis): Promise<CommandClient> {
  const sha1 = (await redis.script('LOAD', withoutShortCut(SCRIPT))) as string
  return {
    command: ([name, , ...rest]) => redis.call(name!, sha1, ...rest),
  }
}
