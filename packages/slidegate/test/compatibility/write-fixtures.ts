import { it } from 'vitest'
import { allowAll } from '../support/access.ts'
import { useRedis } from '../support/use-redis.ts'
import { type Fixture, record, writeFixtures } from './fixture.ts'
import { HISTORIES } from './histories.ts'

// No test, but run as one by write-fixtures.js.

const { redis, server } = await useRedis()
await allowAll(server.port)

it('writes what the present code stores', async () => {
  const recorded = new Map<string, Fixture>()
  for (const [name, history] of HISTORIES) recorded.set(name, await record(redis, history))
  writeFixtures(process.env.FIXTURES_VERSION!, recorded)
})
