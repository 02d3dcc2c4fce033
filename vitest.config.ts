import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    include: ['packages/*/test/**/*.test.ts', 'bench/test/**/*.test.ts', 'examples/test/**/*.test.ts'],
    // What programs print is compared, on whatever terminal.
    env: { FORCE_COLOR: '0' },
    pool: 'forks',
    maxWorkers: 2,
    // Only against what hangs: a busy machine pauses for seconds, and takes minutes for what takes one elsewhere.
    testTimeout: 300_000,
    hookTimeout: 300_000,
    expect: { poll: { timeout: 30_000 } },
  },
})
