import { it } from 'vitest'
import { allowAll } from '../support/access.ts'
import { useRedis } from '../support/use-redis.ts'
import { type Fixture, record, writeFixtures } from './fixture.ts'
import { HISTORIES } from './histories.ts'

// This isn't a test, but write-fixtures.js runs it as one.

const { redis, server } = await useRedis()
await allowAll(server.port)

it('writes the state of the current code', async () => {
  const recorded = new Map<string, Fixture>()
  for (const [name, history] of HISTORIES) recorded.set(name, await record(redis, history))
  writeFixtures(process.env.FIXTURES_VERSION!, recorded)
})
