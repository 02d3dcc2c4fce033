#!/usr/bin/env node
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { startVitest } from 'vitest/node'

// Floods a store of 100,000 keys with 50 million others: `--keys 5000000` for fewer.

const { values } = parseArgs({ options: { keys: { type: 'string', default: '50000000' } } })
if (!/^[1-9][0-9]{0,9}$/.test(values.keys)) {
  console.error(`--keys is ${values.keys}; it must be an integer from 1`)
  process.exit(2)
}
process.env.FLOOD_KEYS = values.keys

const test = fileURLToPath(new URL('flood.test.ts', import.meta.url))
const vitest = await startVitest('test', [test], { watch: false, disableConsoleIntercept: true })
await vitest.close()
