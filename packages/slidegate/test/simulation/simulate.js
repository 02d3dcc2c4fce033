#!/usr/bin/env node
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { startVitest } from 'vitest/node'

// Runs the simulation. `--seeds 10000 --from 1` runs many seeds; `--seed 7` runs one and prints all its events.

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
  console.error(`Invalid --${name} ${value}. Expected an integer from 1 to 999999999.`)
  process.exit(2)
}
if (seed !== undefined) process.env.SIMULATION_SEED = seed
process.env.SIMULATION_SEEDS = seeds
process.env.SIMULATION_FROM = from

const test = fileURLToPath(new URL('simulation.test.ts', import.meta.url))
const vitest = await startVitest('test', [test], { watch: false, disableConsoleIntercept: true })
await vitest.close()
