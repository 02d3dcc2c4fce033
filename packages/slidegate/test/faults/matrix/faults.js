#!/usr/bin/env node
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { startVitest } from 'vitest/node'

// Runs every fault with every client and policy, and writes the results to docs/failures.md. Separate several names
// by commas: `--fault kill,freeze --client ioredis-5 --policy deny`.

const { values } = parseArgs({
  options: {
    fault: { type: 'string', default: '' },
    client: { type: 'string', default: '' },
    policy: { type: 'string', default: '' },
  },
})
process.env.MATRIX = 'full'
process.env.MATRIX_FAULTS = values.fault
process.env.MATRIX_CLIENTS = values.client
process.env.MATRIX_POLICIES = values.policy

const test = fileURLToPath(new URL('matrix.test.ts', import.meta.url))
const vitest = await startVitest('test', [test], { watch: false, disableConsoleIntercept: true })
await vitest.close()
