#!/usr/bin/env node
import { fileURLToPath } from 'node:url'
import { startVitest } from 'vitest/node'

// Writes what the present code stores, and decides by it, as the fixtures of a version: `npm run fixtures -- 0.2.0`.

const [version = ''] = process.argv.slice(2)
if (!/^\d+\.\d+\.\d+$/.test(version)) {
  console.error(
    `the version is ${JSON.stringify(version)}; it must be that which will be released, such as 0.2.0`,
  )
  process.exit(2)
}
process.env.FIXTURES_VERSION = version
const writer = fileURLToPath(new URL('write-fixtures.ts', import.meta.url))
// Not a test file, so it is in none of the tiers.
const vitest = await startVitest('test', [writer], {
  watch: false,
  config: false,
  include: [writer],
  testTimeout: 300_000,
})
await vitest.close()
