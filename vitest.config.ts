import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { defineConfig } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'

/**
 * - `unit` needs only Node.
 * - `integration` needs redis-server, or a few seconds.
 * - `system` needs other programs, additional packages, or minutes.
 */
const TIERS = ['unit', 'integration', 'system'] as const
type Tier = (typeof TIERS)[number]

/** Returns the tier from the first line, `// tier: system`. Default: `unit` in packages/, else `system`. */
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

/** A project per tier. System tests that mock modules have their own, since they can't share modules. */
const PROJECTS = [...TIERS, 'system-mocks'] as const

function projectOf(file: string): (typeof PROJECTS)[number] {
  const text = readFileSync(join(import.meta.dirname, file), 'utf8')
  const tier = tierOf(file, text)
  return tier === 'system' && text.includes('vi.mock(') ? 'system-mocks' : tier
}

/** Files that take long but would start late: short ones, and those of `system-mocks`. */
const SLOW = /\/(snippets|site|installed|mutants|simulation|third-party|matrix|flood)\.test\.ts$/

class SlowFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files)
    const isSlow = ({ moduleId }: TestSpecification) => SLOW.test(moduleId)
    return [...sorted.filter(isSlow), ...sorted.filter((file) => !isSlow(file))]
  }
}

export default defineConfig({
  test: {
    sequence: { sequencer: SlowFirst },
    // Tests compare output, so programs must not color it.
    env: { FORCE_COLOR: '0' },
    pool: 'forks',
    // Twice the cores of a small machine, because tests wait half of the time.
    maxWorkers: 4,
    // All cores are busy, so parallel garbage collection only adds work. With more space, it runs less often.
    execArgv: ['--single-threaded-gc', '--max-semi-space-size=64'],
    // Catches only tests that hang. A busy machine can be many times slower.
    testTimeout: 300_000,
    hookTimeout: 300_000,
    expect: { poll: { timeout: 30_000 } },
    projects: PROJECTS.map((name) => ({
      extends: true as const,
      test: {
        name,
        include: testFiles.filter((file) => projectOf(file) === name),
        env: { TEST_TIER: name },
        // Test files in a worker share modules, so each loads once instead of 180 times.
        isolate: name === 'system-mocks',
      },
    })),
  },
})
