import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, it } from 'vitest'
import type { Results } from '../src/results.ts'

const BENCH = join(import.meta.dirname, '..')

it('the short form of the flood denies the flood and admits all other users', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'slidegate-flood-'))
  const file = join(folder, 'results.json')
  // The scenario fails if a user is denied, or if a request gets another status.
  await promisify(execFile)(join(BENCH, 'node_modules/.bin/tsx'), ['src/main.ts', 'flood', '--json', file], {
    cwd: BENCH,
  })
  const { scenarios }: Results = JSON.parse(await readFile(file, 'utf8'))
  await rm(folder, { recursive: true })

  const [flood] = scenarios
  expect(flood!.plots.map(({ name }) => name)).toEqual(['flood-rate', 'flood-p99'])
  const denied = flood!.figures.filter(({ name }) => name.includes('denied per second, vs.'))
  expect(denied.map(({ name }) => name.split(':')[0])).toEqual([
    'Express on Redis',
    'Express on Redis, deny cache',
    'service on Redis',
    'Express on a service',
    'Express on a service, deny cache',
  ])
  for (const { raw } of denied) expect(Math.min(...raw.above!)).toBeGreaterThan(0)
})
