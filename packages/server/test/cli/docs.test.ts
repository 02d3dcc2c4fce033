// tier: integration
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { parse } from 'yaml'
import { adminService } from '../admin/support.ts'
import { slidegateHere } from '../support/cli.ts'
import { documentedIn, figureless, timeless } from './documented.ts'

const page = readFileSync(join(import.meta.dirname, '../../../../docs/cli.md'), 'utf8')

it('docs/cli.md shows what the commands print', async () => {
  const [, config] = /^```yaml\n([\s\S]*?)^```$/m.exec(page)!
  await using service = await adminService(parse(config!))
  const documented = documentedIn(page)
  expect(documented.length).toBeGreaterThan(20)
  for (const { words, withCode, output } of documented) {
    const human = words.includes('--json') ? [] : ['--human']
    const outcome = await slidegateHere([...words, ...human], {
      SLIDEGATE_URL: service.url,
      SLIDEGATE_TOKEN: service.token,
    })
    const printed = `${outcome.stdout}${withCode ? `${outcome.code}\n` : ''}`
    // Counts depend on how long the test has been running.
    const plain = words[0] === 'bench' || words[0] === 'usage' ? figureless : timeless
    expect(`${words.join(' ')}\n${plain(printed)}${outcome.stderr}`).toBe(
      `${words.join(' ')}\n${plain(output)}`,
    )
  }
})
