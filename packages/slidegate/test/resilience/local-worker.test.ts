import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, it } from 'vitest'

const SCRIPT = fileURLToPath(new URL('local-worker.js', import.meta.url))

async function warningsOf(options: object, where = 'worker'): Promise<number> {
  const words = [SCRIPT, JSON.stringify(options), where]
  const { stderr } = await promisify(execFile)(process.execPath, words)
  return stderr.split('[SLIDEGATE_LOCAL_INSTANCES]').length - 1
}

it("a worker of node:cluster warns once about onStoreError: 'local' without instances", async () => {
  expect(await warningsOf({ onStoreError: 'local' })).toBe(1)
})

it.each([
  [{ onStoreError: 'local', instances: 1 }, 'worker'],
  [{ onStoreError: 'allow' }, 'worker'],
  [{ onStoreError: 'local', onMemory: true }, 'worker'],
  [{ onStoreError: 'local' }, 'a standalone process'],
])('no warning is emitted with %o in %s', async (options, where) => {
  expect(await warningsOf(options, where)).toBe(0)
})
