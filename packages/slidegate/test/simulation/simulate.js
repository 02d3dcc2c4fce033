#!/usr/bin/env node
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { startVitest } from 'vitest/node'

// Plays runs of the simulation: `--seeds 10000 --from 1` plays many, `--seed 7` plays one and prints all that happens in it.

const { values } = parseArgs({
  options: {
    seed: { type: 'string' },
    seeds: { type: 'string', default: '500' },
    from: { type: 'string', default: '1' },
  },
})
const { seed, seeds, from } = values
for (const [name, value] of Object.entries(values)) {
  if (/^[1-9][0-9]{0,8}$/.test(value)) continue
  console.error(`--${name} is ${value}; it must be an integer from 1`)
  process.exit(2)
}
if (seed !== undefined) process.env.SIMULATION_SEED = seed
process.env.SIMULATION_SEEDS = seeds
process.env.SIMULATION_FROM = from

const test = fileURLToPath(new URL('simulation.test.ts', import.meta.url))
const vitest = await startVitest('test', [test], { watch: false, disableConsoleIntercept: true })
await vitest.close()
