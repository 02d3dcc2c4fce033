import { ask } from './ask.ts'

/** An ACL pattern for keys whose prefix starts with the default one. */
const KEYS = '~slidegate:*'

/** Redis commands that a store needs, by feature. The store sends them or its script calls them. */
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

/**
 * All commands that a store needs.
 * The list in docs/production.md is the same, and acl.test.ts checks that the script calls no others.
 */
export const COMMANDS: readonly string[] = Object.values(COMMANDS_FOR).flat()

/** Commands that only tests use. The script must not call any of them: see acl.test.ts. */
export const COMMANDS_OF_TESTS: readonly string[] = [
  // Clients send these. AUTH, HELLO, QUIT and RESET need no permission.
  ...['ping', 'info', 'client', 'select', 'asking', 'readonly', 'multi', 'exec'],
  // Tests inspect state with these.
  ...['keys', 'scan', 'pttl', 'type', 'dump', 'dbsize', 'strlen', 'xread'],
  ...['memory', 'slowlog', 'role', 'echo', 'command', 'monitor'],
  // Tests cause damage with these.
  ...['flushall', 'rpush', 'hset', 'incr', 'restore', 'script', 'config', 'acl', 'save'],
  // Tests set up servers with these, or servers send them to each other.
  ...['cluster', 'migrate', 'restore-asking', 'wait', 'replicaof', 'slaveof', 'psync', 'replconf'],
]

/** Returns ACL rules for a store's user, to append to its name and password. */
export function rulesFor(commands: readonly string[] = COMMANDS): string[] {
  return [KEYS, ...commands.map((name) => `+${name}`)]
}

const selector = (...rules: string[]) => `(${rules.join(' ')})`

/**
 * ACL rules for the default user on all test servers.
 * The first selector has only the rights a store needs, so the script runs with those. Commands that only tests use
 * have a selector of their own.
 */
export const RESTRICTED: readonly string[] = [
  ...['default', 'reset', 'on', 'nopass', ...rulesFor()],
  selector(KEYS, ...COMMANDS_OF_TESTS.map((name) => `+${name}`)),
  // Instances of the service send each other requests through this channel.
  selector('&slidegate:*', '+subscribe', '+publish'),
  // Sentinels find each other through this channel.
  selector('&__sentinel__:hello', '+subscribe', '+publish'),
]

/** Lifts the restrictions of a server, for tests that need other keys or commands. */
export async function allowAll(port: number): Promise<void> {
  await ask(port, 'ACL', 'SETUSER', 'default', 'allkeys', 'allcommands')
}
