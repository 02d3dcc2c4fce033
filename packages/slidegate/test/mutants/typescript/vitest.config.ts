import { defineConfig } from 'vitest/config'
import { GROUPS } from './groups.js'
import { keptThread } from './kept-thread.ts'

const group = GROUPS[process.env.MUTATION_GROUP ?? '']

export default defineConfig({
  plugins: [keptThread],
  test: {
    include: group?.tests.map((path) => `packages/slidegate/test/${path}`) ?? [],
    setupFiles: ['packages/slidegate/test/mutants/typescript/setup.ts'],
    isolate: false,
    // Modules are loaded again after an endless mutant.
    experimental: { fsModuleCache: true },
    testTimeout: 8000,
    hookTimeout: 20_000,
  },
})
