// tier: system
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type TestService, testService } from '../../server/test/support/service.ts'
import { violationsIn } from './support/axe.ts'
import { openWindow } from './support/browser.ts'
import { AUTH, LIMITERS, TOKENS } from './support/limiters.ts'

const PHONE = { width: 390, height: 844 }
const AS_ADMIN = { authorization: `Bearer ${TOKENS.admin}` }
const ann = { limiter: 'api', key: 'ann' }

let service: TestService
beforeAll(async () => {
  service = await testService({ limiters: LIMITERS, auth: AUTH })
})
afterAll(async () => {
  await service[Symbol.asyncDispose]()
})

function send(method: string, path: string, body: object) {
  const headers = { 'content-type': 'application/json', ...AS_ADMIN }
  return service.ask(`/v1/admin/${path}`, { method, headers, body: JSON.stringify(body) })
}

it('an operator types a reason, reads the change in words, and undoes it', async () => {
  await using window = await openWindow(service.httpUrl, {
    token: TOKENS.admin,
    at: '/limiters/api/keys/ann',
  })
  const { page } = window
  await page.getByRole('button', { name: 'Override…' }).click()
  const form = page.getByRole('dialog')
  await form.getByRole('group', { name: 'hourly' }).getByLabel('Limit').fill('300')
  await form.getByLabel('Reason').fill('a partner with a deadline')
  expect(await form.getByLabel('Reason').getAttribute('maxlength')).toBe('200')
  await form.getByRole('button', { name: 'Set override' }).click()
  await form.waitFor({ state: 'detached' })

  await window.go('/audit')
  const row = page.getByRole('row').filter({ hasText: 'hourly: 100 → 300 in any 1 h, for 1 h' })
  await row.getByText('“a partner with a deadline”').waitFor()
  expect(await row.getByRole('link', { name: 'ann' }).getAttribute('href')).toBe('#/limiters/api/keys/ann')
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme })
    expect(await violationsIn(window)).toEqual([])
  }
  await page.setViewportSize(PHONE)
  await expect.poll(() => page.evaluate('document.documentElement.scrollWidth')).toBe(PHONE.width)
  await row.getByRole('button', { name: /^Undo/ }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByText('hourly: 100 → 300').waitFor()
  expect(await violationsIn(window)).toEqual([])
  await dialog.getByLabel('Reason').fill('the deadline has passed')
  await dialog.getByRole('button', { name: 'Undo' }).click()
  await dialog.waitFor({ state: 'detached' })

  await page.getByRole('row').filter({ hasText: 'undo: hourly: 300 → 100 in any 1 h' }).waitFor()
  await row.getByText('undone', { exact: true }).waitFor()
  expect(await row.getByRole('button', { name: /^Undo/ }).count()).toBe(0)
  const explained = (await service.post('/v1/explain', ann, AS_ADMIN)).body
  expect(explained.overrides).toEqual([])
})

it('the dialog explains why a change can no longer be undone', async () => {
  await send('POST', 'block', { limiter: 'api', key: 'eve', ttl: '1h' })
  await using window = await openWindow(service.httpUrl, {
    token: TOKENS.admin,
    at: '/limiters/api/keys/eve',
  })
  window.expect(/status of 409/)
  const { page } = window
  const changes = page.getByRole('region', { name: 'Changes' })
  await changes.getByText('block: blocked for 1 h').waitFor()
  await changes.getByRole('button', { name: /^Undo block/ }).click()
  await service.service.get('api').limiter.overrides.set('eve', 'block', { ttl: '2h' })
  await page.getByRole('dialog').getByRole('button', { name: 'Undo' }).click()
  await page
    .getByRole('alert')
    .getByText(/a later change prevents this undo: blocked for (2 h|1 h 59 min)/)
    .waitFor()
})

it('an override on a blocked key warns before and after that the block stays', async () => {
  await send('POST', 'block', { limiter: 'api', key: 'bob', ttl: '1h' })
  await using window = await openWindow(service.httpUrl, {
    token: TOKENS.admin,
    at: '/limiters/api/keys/bob',
  })
  const { page } = window
  await page.getByRole('button', { name: 'Override…' }).click()
  const form = page.getByRole('dialog')
  await form.getByText(/The key is blocked for .*, even with an override/).waitFor()
  await form.getByLabel('Exempt').check()
  await form.getByRole('button', { name: 'Set override' }).click()
  await form.getByRole('status').getByText("an override doesn't end bans or blocks").waitFor()
  expect(await violationsIn(window)).toEqual([])
  await form.getByRole('button', { name: 'Close' }).click()
  await form.waitFor({ state: 'detached' })
})

it('a reader sees the audit, but no button to undo', async () => {
  await send('POST', 'block', { limiter: 'api', key: 'dan' })
  await using window = await openWindow(service.httpUrl, { token: TOKENS.read, at: '/audit' })
  const { page } = window
  await page.getByText('block: blocked until unblocked').first().waitFor()
  expect(await page.getByRole('button', { name: /^Undo/ }).count()).toBe(0)
})
