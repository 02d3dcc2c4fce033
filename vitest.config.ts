import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { defineConfig } from 'vitest/config'

/**
 * - `unit` needs nothing but Node.
 * - `integration` needs redis-server, or a few seconds.
 * - `system` needs whatever it needs: other programs, packages of its own, minutes.
 */
const TIERS = ['unit', 'integration', 'system'] as const
type Tier = (typeof TIERS)[number]

/** A test file says which tier it belongs to in its first line, `// tier: system`. In packages/ it's a unit test otherwise. */
function tierOf(file: string, text: string): Tier {
  if (!file.startsWith('packages/')) return 'system'
  const named = /^\/\/ tier: (.*)\n/.exec(text)?.[1]
  const tier = TIERS.find((each) => each === (named ?? 'unit'))
  if (tier === undefined)
    throw new Error(`${file}: unknown tier "${named}". Expected one of: ${TIERS.join(', ')}.`)
  return tier
}

const testFiles = [
  'packages/slidegate/test',
  'packages/replay/test',
  'packages/server/test',
  'packages/dashboard/test',
  'bench/test',
  'examples/test',
]
  .flatMap((folder) =>
    readdirSync(join(import.meta.dirname, folder), { recursive: true, encoding: 'utf8' }).map(
      (file) => `${folder}/${file}`,
    ),
  )
  .filter((file) => file.endsWith('.test.ts') && !file.includes('/node_modules/'))

/** Each tier, and apart from them the system tests that replace modules: these can't share them. */
const PROJECTS = [...TIERS, 'system-mocks'] as const

function projectOf(file: string): (typeof PROJECTS)[number] {
  const text = readFileSync(join(import.meta.dirname, file), 'utf8')
  const tier = tierOf(file, text)
  return tier === 'system' && text.includes('vi.mock(') ? 'system-mocks' : tier
}

export default defineConfig({
  test: {
    // What programs print is compared, on whatever terminal.
    env: { FORCE_COLOR: '0' },
    pool: 'forks',
    // One more than the cores of a small machine: tests wait for windows, servers and browsers a third of the time.
    maxWorkers: 3,
    // Only against what hangs: a busy machine pauses for seconds, and takes minutes for what takes one elsewhere.
    testTimeout: 300_000,
    hookTimeout: 300_000,
    expect: { poll: { timeout: 30_000 } },
    projects: PROJECTS.map((name) => ({
      extends: true as const,
      test: {
        name,
        include: testFiles.filter((file) => projectOf(file) === name),
        env: { TEST_TIER: name },
        // The files of a worker share their modules, which loads each of them once rather than 180 times.
        isolate: name === 'system-mocks',
      },
    })),
  },
})
