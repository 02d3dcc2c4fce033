// tier: system
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'
import { startNginx } from '../../server/test/gateway/support/programs.ts'
import { testService } from '../../server/test/support/service.ts'
import { openWindow } from './support/browser.ts'
import { AUTH, LIMITERS, TOKENS } from './support/limiters.ts'

const PAGE = readFileSync(fileURLToPath(new URL('../../../docs/dashboard.md', import.meta.url)), 'utf8')

it('the dashboard works behind nginx below a path, as documented', async () => {
  const [, location] = /^```nginx\n([\s\S]*?)^```$/m.exec(PAGE)!
  await using service = await testService({ limiters: LIMITERS, auth: AUTH })
  await using nginx = await startNginx({
    slidegate: new URL(service.httpUrl).host,
    upstream: '127.0.0.1:9',
    changes: { 'location / {': `${location}\nlocation / {` },
  })
  await using window = await openWindow(`${nginx.url}/slidegate`, {
    token: TOKENS.admin,
    at: '/limiters/api',
  })
  const { page } = window
  await page.getByRole('status').getByText('Live').waitFor()
  // A change is a POST, so the browser sends an Origin header.
  const row = page.getByRole('row', { name: /stricter/ })
  await row.getByRole('button', { name: 'Enforce' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Enforce' }).click()
  await row.getByText('enforced').waitFor()
  expect([...window.origins]).toEqual([nginx.url])
})
