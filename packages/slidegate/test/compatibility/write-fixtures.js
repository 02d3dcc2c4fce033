#!/usr/bin/env node
import { fileURLToPath } from 'node:url'
import { startVitest } from 'vitest/node'

// Writes the fixtures of a version with the current code: `npm run fixtures -- 0.2.0`.

const [version = ''] = process.argv.slice(2)
if (!/^\d+\.\d+\.\d+$/.test(version)) {
  console.error(`Invalid version ${JSON.stringify(version)}. Expected the next release, such as 0.2.0.`)
  process.exit(2)
}
process.env.FIXTURES_VERSION = version
const writer = fileURLToPath(new URL('write-fixtures.ts', import.meta.url))
// This isn't a test file, so it is in no tier.
const vitest = await startVitest('test', [writer], {
  watch: false,
  config: false,
  include: [writer],
  testTimeout: 300_000,
})
await vitest.close()
