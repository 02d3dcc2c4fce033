// tier: integration
import { randomUUID } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Redis } from 'ioredis'

import { beforeAll, describe, expect, it } from 'vitest'
import { createLimiter, StoreUnavailableError, slidingWindow, tokenBucket } from '../../src/index.ts'
import { type RedisClient, redisStore } from '../../src/stores/redis/index.ts'
import { SCRIPT } from '../../src/stores/redis/script.generated.ts'
import { storeConformance } from '../../src/testing/index.ts'
import { codeBlocks, ROOT } from '../docs/markdown.ts'
import { COMMANDS, COMMANDS_FOR, COMMANDS_OF_TESTS, rulesFor } from '../support/access.ts'
import { SAMPLES } from '../support/kinds.ts'
import { listed } from '../support/overrides.ts'
import { useRedis } from '../support/use-redis.ts'

const { server, redis: admin } = await useRedis()

async function allow(username: string, commands: readonly string[]): Promise<void> {
  await admin.call('ACL', 'SETUSER', username, 'reset', 'on', '>secret', ...rulesFor(commands))
}

function connect(username: string, port = server.port): Redis {
  // The client's ready check would need INFO.
  return new Redis(port, { username, password: 'secret', enableReadyCheck: false })
}

async function conform(client: RedisClient): Promise<void> {
  const limits = [slidingWindow({ limit: 2, window: '1h' })]
  // Runs first, because a request also succeeds if its overrides can't be read.
  await override(client)
  for (const { run } of storeConformance) {
    await run(({ clock }) => redisStore(client, { clock, prefix: `slidegate:${randomUUID()}` }))
  }
  // Without a clock option, the script reads the time of Redis.
  await createLimiter({ limits, store: redisStore(client), timeoutMs: 30_000 }).consume('k')
  // Small logs in one batch are read in one command.
  const buckets = [tokenBucket({ capacity: 2, refill: 2, interval: '1h' })]
  const limiter = createLimiter({ limits: buckets, store: redisStore(client), timeoutMs: 30_000 })
  await Promise.all(['k', 'l', 'm'].map((key) => limiter.consume(key)))
}

/** Sets overrides that last, expire and are deleted. */
async function override(client: RedisClient): Promise<void> {
  const limits = [slidingWindow({ limit: 2, window: '1h' })]
  const store = redisStore(client, { prefix: `slidegate:${randomUUID()}` })
  const [here, elsewhere] = Array.from({ length: 2 }, () =>
    createLimiter({ limits, overrides: true, store, timeoutMs: 30_000 }),
  )
  await here!.overrides.set('k', { limit: 3 })
  await elsewhere!.overrides.set('other', 'block', { ttl: '1h' })
  expect((await elsewhere!.consume('k')).remaining).toBe(2)
  expect(await listed(here!)).toHaveLength(2)
  expect(await elsewhere!.overrides.delete('k')).toBe(true)
  expect(await listed(here!)).toHaveLength(1)
}

describe('a Redis user with only the documented rights', () => {
  beforeAll(() => allow('limiter', COMMANDS))

  it('passes the conformance suite', async () => {
    const client = connect('limiter')
    await conform(client)
    await client.quit()
  })

  it('fails on keys with another prefix', async () => {
    const client = connect('limiter')
    const limits = [slidingWindow({ limit: 2, window: '1h' })]
    const limiter = createLimiter({
      limits,
      store: redisStore(client, { prefix: 'other' }),
      timeoutMs: 30_000,
    })
    await expect(limiter.consume('k')).rejects.toBeInstanceOf(StoreUnavailableError)
    await client.quit()
  })
})

it.each(COMMANDS)('the store needs %s', async (missing) => {
  await admin.script('FLUSH')
  await allow(
    `without-${missing}`,
    COMMANDS.filter((name) => name !== missing),
  )
  const client = connect(`without-${missing}`)
  await expect(conform(client)).rejects.toThrow(StoreUnavailableError)
  await client.quit()
})

describe('commands of optional features can be left out', () => {
  const SORTED_SETS = ['a sliding window as a sorted set', 'a concurrency limit', 'a distinct-value limit']
  const groupOf = (name: string) => {
    if (SORTED_SETS.includes(name)) return COMMANDS_FOR['a sorted set']
    if (name === 'an approximate distinct-value limit') return COMMANDS_FOR['approximate values']
    return name === 'a sliding window as a stream' ? COMMANDS_FOR['a stream'] : []
  }

  it.each(Object.entries(SAMPLES))('%s works without them', async (name, { make, options, isRefundable }) => {
    await allow('some', [...COMMANDS_FOR['any limit'], ...groupOf(name)])
    const client = connect('some')
    const store = redisStore(client, { prefix: `slidegate:${randomUUID()}` })
    const ban = { after: 2, within: '1h', for: '1h' } as const
    const limiter = createLimiter({ limits: [make({ limit: 2 })], ban, store, timeoutMs: 30_000 })
    const decision = await limiter.consume('k', options?.(0))
    expect(decision.allowed).toBe(true)
    if (isRefundable) await limiter.refund('k', decision)
    for (const n of [1, 2, 3, 4, 5]) await limiter.consume('k', options?.(n))
    expect((await limiter.peek('k', options?.(6))).allowed).toBe(false)
    await limiter.explain('k', { charges: true })
    await limiter.reset('k')
    expect((await limiter.consume('k', options?.(7))).allowed).toBe(true)
    await client.quit()
  })
})

describe('the documented commands', () => {
  /** Names of commands, as this server writes them. */
  let known: Set<string>
  beforeAll(async () => {
    known = new Set((await admin.call('COMMAND', 'LIST')) as string[])
  })
  const commandsAmong = (names: Iterable<string>) =>
    Array.from(new Set(names), (name) => name.toLowerCase()).filter((name) => known.has(name))

  // The second statement is inside a function, because upvalues are slower.
  const ALIASES = [
    'local call_redis, pcall_redis = redis.call, redis.pcall\n',
    'local call_redis, pcall_redis, struct_pack, struct_unpack = redis.call, redis.pcall, struct.pack, struct.unpack\n',
  ]
  const script = ALIASES.reduce((rest, aliases) => rest.replace(aliases, ''), SCRIPT)

  it('go through two functions of the script only', () => {
    for (const aliases of ALIASES) expect(SCRIPT.split(aliases)).toHaveLength(2)
    const otherWays = /\b(redis|server|_G|getfenv|setfenv|loadstring|rawget)\b|\bp?call_redis\b(?!\()/g
    expect(script.match(otherWays) ?? []).toEqual([])
  })

  it('cover every call of the script', () => {
    const calls = Array.from(script.matchAll(/\bp?call_redis\(\s*(?:'([^']*)')?/g), ([, name]) => name)
    const named = calls.filter((name) => name !== undefined)
    expect(named.filter((name) => !COMMANDS.includes(name.toLowerCase()))).toEqual([])
    // In three places, the name comes from elsewhere in the script.
    expect(calls.length - named.length).toBe(3)
    const literals = Array.from(script.matchAll(/(['"])([A-Z]+)\1/g), ([, , text]) => text!)
    const sent = ['evalsha', 'eval']
    expect([...commandsAmong(literals), ...sent].sort()).toEqual([...COMMANDS].sort())
  })

  it('include the two that the store sends', () => {
    const folder = join(import.meta.dirname, '../../src/stores/redis')
    const sources = readdirSync(folder).filter((file) => file.endsWith('.ts') && !file.includes('generated'))
    const literals = sources.flatMap((file) =>
      Array.from(readFileSync(join(folder, file), 'utf8').matchAll(/'([A-Z]+)'/g), ([, text]) => text!),
    )
    expect(commandsAmong(literals).sort()).toEqual(['eval', 'evalsha'])
  })

  it("aren't among those that only tests use", () => {
    expect(COMMANDS_OF_TESTS.filter((name) => COMMANDS.includes(name.split('|')[0]!))).toEqual([])
  })
})

describe('docs/production.md', () => {
  const blocks = codeBlocks(readFileSync(join(ROOT, 'docs/production.md'), 'utf8')).map(({ code }) => code)
  const words = (code: string) => code.replaceAll("'", '').split(/\s+/)

  /** Returns a user's rights as the server stores them, without the password. */
  async function rightsOf(redis: Redis, username: string): Promise<unknown> {
    const words = (await redis.call('ACL', 'GETUSER', username)) as unknown[]
    return words.filter((_, i) => words[i - 1] !== 'passwords')
  }

  it('shows how to create this user', async () => {
    await allow('right', COMMANDS)
    const [block = ''] = blocks.filter((code) => code.includes(' reset on '))
    const [cli, ...command] = words(block.replaceAll('\\\n', ''))
    expect([cli, ...command.slice(0, 3)]).toEqual(['redis-cli', 'ACL', 'SETUSER', 'limiter'])
    await admin.call(...(command as [string, ...string[]]))
    expect(await rightsOf(admin, 'limiter')).toEqual(await rightsOf(admin, 'right'))
    const client = connect('limiter')
    await conform(client)
    await client.quit()
  })

  it('shows the line for a users.acl file', async () => {
    const [line = ''] = blocks.filter((code) => code.startsWith('user limiter '))
    expect(line).not.toContain('\n')
    await admin.call('ACL', 'SETUSER', ...words(line).slice(1))
    await allow('right', COMMANDS)
    expect(await rightsOf(admin, 'limiter')).toEqual(await rightsOf(admin, 'right'))
  })
})
