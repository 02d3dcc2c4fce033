#!/usr/bin/env node
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { startVitest } from 'vitest/node'

// Takes the screenshots of docs/dashboard.md from a real service under load.
// Options: `--seconds 300` to fill the charts, `--folder` for the target folder.

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '300' },
    folder: {
      type: 'string',
      default: fileURLToPath(new URL('../../../../docs/dashboard', import.meta.url)),
    },
  },
})
process.env.SCREENSHOT_SECONDS = values.seconds
process.env.SCREENSHOT_FOLDER = values.folder

const file = fileURLToPath(new URL('screenshots.ts', import.meta.url))
// Not a test file, so it belongs to no tier.
const vitest = await startVitest('test', [file], {
  watch: false,
  config: false,
  include: [file],
  testTimeout: 600_000,
})
await vitest.close()
