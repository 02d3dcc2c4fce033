#!/usr/bin/env node
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { startVitest } from 'vitest/node'

// Strikes a server and a Cluster with faults at random for an hour: `--minutes 5 --seed 7` for less, and for the same faults again.

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '60' },
    seed: { type: 'string' },
  },
})
for (const [name, value] of Object.entries(values)) {
  if (/^[1-9][0-9]{0,8}$/.test(value)) continue
  console.error(`--${name} is ${value}; it must be an integer from 1`)
  process.exit(2)
}
process.env.SOAK_MINUTES = values.minutes
if (values.seed !== undefined) process.env.SOAK_SEED = values.seed

const test = fileURLToPath(new URL('soak.test.ts', import.meta.url))
const vitest = await startVitest('test', [test], { watch: false, disableConsoleIntercept: true })
await vitest.close()
