import { Stryker } from '@stryker-mutator/core'
import { GROUPS } from '../../packages/slidegate/test/mutants/typescript/groups.js'

// Runs quick tests against small changes of the core, and reports changes that no test detects.

const names = process.argv.length > 2 ? process.argv.slice(2) : Object.keys(GROUPS)

for (const name of names) {
  const group = GROUPS[name]
  if (group === undefined)
    throw new Error(`Unknown group "${name}". Expected one of: ${Object.keys(GROUPS).join(', ')}`)
  process.env.MUTATION_GROUP = name
  const stryker = new Stryker({
    mutate: group.mutate.map((path) => `packages/slidegate/src/${path}`),
    testRunner: 'vitest',
    vitest: { configFile: 'packages/slidegate/test/mutants/typescript/vitest.config.ts', related: false },
    plugins: [
      '@stryker-mutator/vitest-runner',
      './packages/slidegate/test/mutants/typescript/ignore-messages.js',
    ],
    ignorers: ['messages'],
    ignorePatterns: ['bench', 'examples', 'docs', 'packages/server', 'tools', 'dist', 'reports'],
    disableTypeChecks: false,
    // Tests run without compiling, and Stryker can't rewrite the compiler's settings.
    tsconfigFile: 'none',
    coverageAnalysis: 'perTest',
    ignoreStatic: true,
    concurrency: 1,
    timeoutMS: 5000,
    timeoutFactor: 1.5,
    incremental: true,
    incrementalFile: `reports/mutation/${name}-incremental.json`,
    reporters: ['progress-append-only', 'clear-text', 'json'],
    clearTextReporter: { allowColor: false, logTests: false, reportTests: false },
    jsonReporter: { fileName: `reports/mutation/${name}.json` },
    allowConsoleColors: false,
  })
  await stryker.runMutationTest()
}
