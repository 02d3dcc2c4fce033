#!/usr/bin/env node
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { startVitest } from 'vitest/node'

// Checks that some test detects each mutant of the Redis script. `--part ban` runs the mutants of one part.

const { values } = parseArgs({ options: { part: { type: 'string', default: '' } } })
process.env.MUTANTS_STEP = '1'
process.env.MUTANTS_OF = values.part

const test = fileURLToPath(new URL('mutants.test.ts', import.meta.url))
const vitest = await startVitest('test', [test], { watch: false, disableConsoleIntercept: true })
await vitest.close()
