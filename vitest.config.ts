import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    include: ['packages/*/test/**/*.test.ts', 'bench/test/**/*.test.ts', 'examples/test/**/*.test.ts'],
    // What programs print is compared, on whatever terminal.
    env: { FORCE_COLOR: '0' },
    pool: 'forks',
    maxWorkers: 2,
    testTimeout: 60_000,
    hookTimeout: 60_000,
    // A busy machine may pause for longer than the second that is the default.
    expect: { poll: { timeout: 30_000 } },
  },
})
