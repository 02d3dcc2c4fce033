import { describe, expect, it } from 'vitest'
import { startOpenRedis } from '../../../packages/slidegate/test/docs/open-redis.ts'
import { isServer } from '../../../packages/slidegate/test/docs/programs.ts'
import { testSnippets } from '../../../packages/slidegate/test/docs/snippets.ts'
import { startUpstashShim } from '../upstash-shim.ts'

// Runs the snippets of docs/migrate, before and after the migration.

const { programs, statusesOf } = testSnippets('migrate', 'bench', async () => {
  const open = await startOpenRedis()
  const upstash = await startUpstashShim(open.redis)
  return {
    redisUrl: open.server.url,
    env: upstash.env,
    async stop() {
      await upstash.close()
      await open.stop()
    },
  }
})

describe('the server admits as many requests after the migration as before', () => {
  const servers = programs.filter(isServer)
  it.each([...new Set(servers.map(({ page }) => page))])('%s', async (moving) => {
    const seen: (number | undefined)[][] = []
    for (const program of servers.filter(({ page }) => page === moving)) seen.push(await statusesOf(program))
    const [before, ...after] = seen
    expect(before!.length).toBeGreaterThan(1)
    expect(before!.at(-1)).toBe(429)
    expect(after.length).toBeGreaterThan(0)
    for (const statuses of after) expect(statuses).toEqual(before)
  })
})
