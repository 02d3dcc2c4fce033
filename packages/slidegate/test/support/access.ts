import { ask } from './ask.ts'

/** All keys of a store with the default prefix, and of one whose prefix begins with it. */
const KEYS = '~slidegate:*'

/** What the store needs of Redis, by what needs it: what it sends, and what its script calls. */
export const COMMANDS_FOR = {
  'any limit': ['evalsha', 'eval', 'time', 'getrange', 'mget', 'setrange', 'set', 'del', 'pexpire'],
  'a sorted set': [
    ...['zadd', 'zrem', 'zrange', 'zcount', 'zcard', 'zscore'],
    ...['zrangebyscore', 'zremrangebyrank', 'zremrangebyscore'],
  ],
  'a stream': ['xadd', 'xrange', 'xrevrange', 'xlen', 'xtrim', 'xdel', 'xsetid'],
  'approximate values': ['pfadd', 'pfcount', 'exists'],
  overrides: ['get', 'persist'],
} as const

/** All of it. docs/production.md shows the same, and nothing else is called by the script: see acl.test.ts. */
export const COMMANDS: readonly string[] = Object.values(COMMANDS_FOR).flat()

/** What tests use besides. None of it may be what the script calls: see acl.test.ts. */
export const COMMANDS_OF_TESTS: readonly string[] = [
  // Clients for themselves. (AUTH, HELLO, QUIT and RESET are allowed to everybody.)
  ...['ping', 'info', 'client', 'select', 'asking', 'readonly', 'multi', 'exec'],
  // To look.
  ...['keys', 'scan', 'pttl', 'type', 'dump', 'dbsize', 'strlen', 'xread'],
  ...['memory', 'slowlog', 'role', 'echo', 'command', 'monitor'],
  // To break things.
  ...['flushall', 'rpush', 'hset', 'incr', 'restore', 'script', 'config', 'acl', 'save'],
  // Of servers among themselves, and to set them up.
  ...['cluster', 'migrate', 'restore-asking', 'wait', 'replicaof', 'slaveof', 'psync', 'replconf'],
]

/** Rules for the user of a store, to stand behind its name and its password. */
export function rulesFor(commands: readonly string[] = COMMANDS): string[] {
  return [KEYS, ...commands.map((name) => `+${name}`)]
}

const selector = (...rules: string[]) => `(${rules.join(' ')})`

/**
 * The user of everybody who gives no name, on all servers of tests: with keys of a store, and within its script, it has
 * no more rights than a store needs. What tests do besides has a selector of its own.
 */
export const RESTRICTED: readonly string[] = [
  ...['default', 'reset', 'on', 'nopass', ...rulesFor()],
  selector(KEYS, ...COMMANDS_OF_TESTS.map((name) => `+${name}`)),
  // By this instances of the service ask each other.
  selector('&slidegate:*', '+subscribe', '+publish'),
  // By this sentinels find each other.
  selector('&__sentinel__:hello', '+subscribe', '+publish'),
]

/** Lifts the restrictions of a server, for what is none of ours. */
export async function allowAll(port: number): Promise<void> {
  await ask(port, 'ACL', 'SETUSER', 'default', 'allkeys', 'allcommands')
}
