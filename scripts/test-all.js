// Runs every test.
//
//   npm run test:all -- [--long] [--mutants]
//
// `--long` adds random runs that take hours. `--mutants` adds all mutants of the Redis script.
import { spawnSync } from 'node:child_process'
import { parseArgs } from 'node:util'

const { values } = parseArgs({
  options: { long: { type: 'boolean', default: false }, mutants: { type: 'boolean', default: false } },
})

const scripts = [
  'test',
  'test:system',
  ...(values.mutants ? ['mutants', 'mutate'] : []),
  ...(values.long ? ['faults', 'fuzz', 'simulate -- --seeds 10000'] : []),
]

for (const script of scripts) {
  console.log(`\nnpm run ${script}`)
  const { status } = spawnSync('npm', ['run', ...script.split(' ')], { stdio: 'inherit' })
  if (status !== 0) process.exit(status ?? 1)
}
