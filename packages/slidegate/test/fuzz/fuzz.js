#!/usr/bin/env node
import { parseArgs } from 'node:util'
import { startVitest } from 'vitest/node'

// Runs a million random inputs. `--inputs 100000` runs fewer, `--target addresses` only those of one target, and
// `--target addresses --seed 7 --path 3:1` replays a failure.

const { values } = parseArgs({
  options: {
    inputs: { type: 'string', default: '1000000' },
    target: { type: 'string' },
    seed: { type: 'string' },
    path: { type: 'string' },
  },
})
const { inputs, target, seed, path } = values
for (const [name, value] of Object.entries({ inputs, seed })) {
  if (value === undefined || /^-?[0-9]{1,10}$/.test(value)) continue
  console.error(`Invalid --${name} ${value}. Expected an integer.`)
  process.exit(2)
}
process.env.FUZZ_INPUTS = inputs
if (seed !== undefined) process.env.FUZZ_SEED = seed
if (path !== undefined) process.env.FUZZ_PATH = path

const vitest = await startVitest('test', ['test/fuzz/'], {
  watch: false,
  disableConsoleIntercept: true,
  ...(target !== undefined && { testNamePattern: new RegExp(`^ ?fuzzing ${target} finds no failure$`) }),
})
await vitest.close()
