// Checks the Redis user's permissions, by running each of the store's commands on temporary keys.

import { randomBytes } from 'node:crypto'
import { messageOf } from '../../../replay/src/errors.ts'
import type { RedisLink } from '../admin/redis-link.ts'
import type { StoreConfig } from '../config/schema.ts'
import type { Check } from './check.ts'

const DOCS = 'docs/production.md#access'

/** TTL of the temporary keys, in case they can't be deleted. */
const TTL_MS = '5000'

/** Commands with arguments, in an order in which each of them succeeds. `$` stands for the temporary keys' prefix. */
type Commands = readonly (readonly string[])[]

/** Without these permissions, no limit works. */
const REQUIRED: Commands = [
  ['pexpire', '$s', TTL_MS],
  ['set', '$s', '0', 'PX', TTL_MS],
  ['setrange', '$s', '0', 'a'],
  ['getrange', '$s', '0', '0'],
  ['mget', '$s'],
  ['time'],
  ['eval', 'return 1', '1', '$s'],
  ['evalsha', '0'.repeat(40), '1', '$s'],
]

/** Permissions that only some features need. */
const OPTIONAL: Readonly<Record<string, Commands>> = {
  overrides: [
    ['get', '$s'],
    ['persist', '$s'],
    ['pexpire', '$s', TTL_MS],
  ],
  'concurrency, distinct, reservations and log: zset': [
    ['zadd', '$z', '1', 'a'],
    ['pexpire', '$z', TTL_MS],
    ['zrange', '$z', '0', '-1'],
    ['zcount', '$z', '0', '1'],
    ['zcard', '$z'],
    ['zscore', '$z', 'a'],
    ['zrangebyscore', '$z', '0', '1'],
    ['zremrangebyrank', '$z', '5', '5'],
    ['zremrangebyscore', '$z', '5', '5'],
    ['zrem', '$z', 'a'],
  ],
  'log: stream': [
    ['xadd', '$x', '1-1', 'a', 'b'],
    ['pexpire', '$x', TTL_MS],
    ['xrange', '$x', '-', '+'],
    ['xrevrange', '$x', '+', '-'],
    ['xlen', '$x'],
    ['xtrim', '$x', 'MAXLEN', '1'],
    ['xsetid', '$x', '2-1'],
    ['xdel', '$x', '1-1'],
  ],
  'approximate distinct': [
    ['pfadd', '$h', 'a'],
    ['pexpire', '$h', TTL_MS],
    ['pfcount', '$h'],
    ['exists', '$h'],
  ],
  "the service's view of all instances and of Redis": [
    ['publish', '$c', ''],
    ['slowlog', 'get', '1'],
    ['info', 'server'],
  ],
}

const KEYS = ['s', 'z', 'x', 'h']

export async function rightsOf(
  link: RedisLink,
  target: string,
  { url }: NonNullable<StoreConfig['redis']>,
): Promise<Check[]> {
  // All keys have the same hash tag, so a Cluster keeps them on one node.
  const own = `${link.prefix}:{doctor}:${randomBytes(8).toString('hex')}`
  const user = userOf(url)
  const run = async (commands: Commands) => {
    const errors = await Promise.all(
      commands.map(([name, ...words]) =>
        link
          .ask((redis) => redis.call(name!, ...words.map((word) => word.replace('$', `${own}:`))))
          .then(
            () => undefined,
            (error) => messageOf(error),
          ),
      ),
    )
    return commands.map(([name], i) => ({ name: name!, error: errors[i] })).filter(isFailure)
  }
  const base = { target, name: 'rights' }
  const removal: Commands = [['del', ...KEYS.map((key) => `$${key}`)]]
  // Writes keys only if the user may also delete them.
  const refused = await run(removal)
  const failures = refused.length > 0 ? refused : await run(REQUIRED).finally(() => run(removal))
  const other = failures.find(({ error }) => !isRefusal(error))
  if (other !== undefined) {
    const value = `${other.name.toUpperCase()} failed: ${other.error.replace('the Redis command failed: ', '')}`
    return [{ ...base, status: 'problem', value, ...fixFor(other.error) }]
  }
  if (failures.some(({ error }) => /\bkeys?\b/.test(error) && !/'.*'/.test(error))) {
    return [
      {
        ...base,
        status: 'problem',
        value: `${user} isn't allowed to use the keys ${link.prefix}:*`,
        expected: `~${link.prefix}:*`,
        fix: `redis-cli ACL SETUSER ${user} '~${link.prefix}:*'`,
        docs: DOCS,
      },
    ]
  }
  if (failures.length > 0) return [missing('problem', failures, 'every limit')]
  const checks: Check[] = []
  for (const [feature, commands] of Object.entries(OPTIONAL)) {
    const missed = (await run(commands)).filter(({ error }) => isRefusal(error))
    if (missed.length > 0) checks.push(missing('warning', missed, feature))
  }
  await run(removal)
  if (checks.length > 0) return checks
  return [{ ...base, status: 'ok', value: `${user} is allowed to run all commands that the store needs` }]

  function missing(status: 'problem' | 'warning', failed: readonly Failure[], feature: string): Check {
    const names = Array.from(new Set(failed.map(({ name }) => (name === 'slowlog' ? 'slowlog|get' : name))))
    return {
      ...base,
      status,
      value: `${user} isn't allowed to run ${names.join(', ')}`,
      expected: `allowed; needed for ${feature}`,
      fix: `redis-cli ACL SETUSER ${user} ${rulesFor(names)}`,
      docs:
        names.includes('info') || names.includes('publish')
          ? 'docs/production.md#permissions-for-the-service'
          : DOCS,
    }
  }

  function rulesFor(names: readonly string[]): string {
    const channel = names.includes('publish') ? [`'&${link.prefix}:*'`, '+subscribe'] : []
    return [...channel, ...names.map((name) => (name.includes('|') ? `'+${name}'` : `+${name}`))].join(' ')
  }
}

interface Failure {
  readonly name: string
  readonly error: string
}

/** Whether a command failed. NOSCRIPT doesn't count, because it shows that the user may run scripts. */
function isFailure(run: { readonly name: string; readonly error: string | undefined }): run is Failure {
  return run.error !== undefined && !run.error.includes('NOSCRIPT')
}

function isRefusal(error: string): boolean {
  return error.includes('NOPERM')
}

/** How to fix a write that failed for a reason other than permissions. */
function fixFor(error: string): Pick<Check, 'expected' | 'fix' | 'docs'> {
  if (error.includes('OOM')) {
    return {
      expected: 'free memory for new keys',
      fix: 'redis-cli CONFIG SET maxmemory <bytes>',
      docs: 'docs/production.md#memory',
    }
  }
  if (error.includes('READONLY')) {
    return {
      expected: 'a primary: replicas reject writes',
      fix: 'set store.redis.url to the primary',
      docs: 'docs/production.md#failover',
    }
  }
  if (error.includes('MOVED')) {
    return {
      expected: 'used as a Cluster',
      fix: 'set store.redis.cluster to true',
      docs: 'docs/production.md#cluster',
    }
  }
  return { expected: 'writes succeed', docs: 'docs/failures.md#each-failure' }
}

function userOf(url: string | readonly string[]): string {
  const { username } = new URL(typeof url === 'string' ? url : url[0]!)
  return username === '' ? 'default' : decodeURIComponent(username)
}
