// tier: system
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { temporaryFolder } from '../../server/test/support/cli.ts'
import { type TestService, testService } from '../../server/test/support/service.ts'
import { startProcess } from '../../server/test/support/service-process.ts'
import { freePort } from '../../slidegate/test/support/ports.ts'
import { violationsIn } from './support/axe.ts'
import { openWindow } from './support/browser.ts'
import { AUTH, LIMITERS, TOKENS } from './support/limiters.ts'

const REFUSED = /status of 401/

let service: TestService
beforeAll(async () => {
  service = await testService({ limiters: LIMITERS, auth: AUTH })
})
afterAll(async () => {
  await service[Symbol.asyncDispose]()
})

describe('signing in', () => {
  it('accepts a known token and rejects others', async () => {
    await using window = await openWindow(service.httpUrl)
    window.expect(REFUSED)
    const { page } = window
    await page.getByLabel('Token').fill('a-token-that-nobody-knows')
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.getByRole('alert').getByText('rejected this token').waitFor()
    await page.getByLabel('Token').fill(TOKENS.read)
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.getByText('reader (read)').waitFor()
    await page.getByRole('link', { name: 'api' }).waitFor()
    // The tab keeps the token until it is closed.
    await page.reload()
    await page.getByText('reader (read)').waitFor()
    await page.getByRole('button', { name: 'Sign out' }).click()
    await page.getByLabel('Token').waitFor()
    expect(await page.evaluate('sessionStorage.length')).toBe(0)
  })

  it('shows nothing without the role read', async () => {
    await using window = await openWindow(service.httpUrl, { token: TOKENS.check })
    await window.page.getByText('program has the check role').waitFor()
    expect(await window.page.getByRole('navigation').count()).toBe(0)
  })

  it('works for users who read without a token', async () => {
    await using open = await testService({ limiters: LIMITERS, auth: { ...AUTH, anonymous: 'read' } })
    await using window = await openWindow(open.httpUrl)
    const { page } = window
    await page.getByText('anonymous (read)').waitFor()
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.getByLabel('Token').fill(TOKENS.admin)
    await page.getByRole('main').getByRole('button', { name: 'Sign in' }).click()
    await page.getByText('operator (admin)').waitFor()
  })
})

describe('a service without tokens', () => {
  const banner =
    'This service has no tokens. Before other machines use it, set auth.tokens in its configuration.'

  it('the admin link signs in, and its token leaves the address', async () => {
    await using open = await testService({ limiters: LIMITERS })
    await using window = await openWindow(open.page, { at: '/audit' })
    const { page } = window
    await page.getByText('admin-link (admin)').waitFor()
    expect(page.url()).toBe(`${open.httpUrl}/#/audit`)
    await page.getByRole('complementary', { name: 'Access' }).getByText(banner).waitFor()
    await page.reload()
    await page.getByText('admin-link (admin)').waitFor()
    await page.getByRole('button', { name: 'Sign out' }).click()
    await page.getByText('Open the link that the service printed at startup').waitFor()
  })

  it('a page without a token mentions the admin link', async () => {
    await using open = await testService({ limiters: LIMITERS })
    await using window = await openWindow(open.httpUrl)
    const { page } = window
    await page.getByText('Open the link that the service printed at startup').waitFor()
    await page.getByText(banner).waitFor()
    expect(await page.getByRole('navigation').count()).toBe(0)
    expect(await violationsIn(window)).toEqual([])
    await page.emulateMedia({ colorScheme: 'dark' })
    expect(await violationsIn(window)).toEqual([])
  })

  it('the link of an earlier start is rejected', async () => {
    await using open = await testService({ limiters: LIMITERS })
    await using window = await openWindow(`${open.httpUrl}/?token=the-token-of-a-former-start`)
    window.expect(REFUSED)
    await window.page.getByRole('alert').getByText('rejected this token').waitFor()
    expect(await window.page.evaluate('sessionStorage.length')).toBe(0)
  })

  it('a service with tokens has no banner', async () => {
    await using window = await openWindow(service.httpUrl, { token: TOKENS.read })
    await window.page.getByText('reader (read)').waitFor()
    expect(await window.page.getByText('no tokens').count()).toBe(0)
  })
})

describe('navigation', () => {
  it('sets the title and focuses the heading', async () => {
    await using window = await openWindow(service.httpUrl, { token: TOKENS.read })
    const { page } = window
    await page.getByRole('link', { name: 'Audit' }).click()
    await page.getByRole('heading', { level: 1, name: 'Audit' }).waitFor()
    await expect.poll(() => page.title()).toBe('Audit · slidegate')
    await page.locator('h1:focus', { hasText: 'Audit' }).waitFor()
    expect(await page.getByRole('link', { name: 'Audit' }).getAttribute('aria-current')).toBe('page')
    await page.goBack()
    await page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor()
    await expect.poll(() => page.title()).toBe('Overview · slidegate')
  })

  it('skips to the content by keyboard', async () => {
    await using window = await openWindow(service.httpUrl, { token: TOKENS.read })
    const { page } = window
    await page.getByRole('heading', { level: 1 }).waitFor()
    await page.keyboard.press('Tab')
    await page.keyboard.press('Enter')
    expect(await page.evaluate('document.activeElement.id')).toBe('main')
  })

  it('keeps the chosen colors', async () => {
    await using window = await openWindow(service.httpUrl, { token: TOKENS.read })
    const { page } = window
    const background = () => page.evaluate('getComputedStyle(document.documentElement).backgroundColor')
    const light = await background()
    await page.getByLabel('Colors').selectOption('dark')
    const dark = await background()
    expect(dark).not.toBe(light)
    await page.reload()
    expect(await background()).toBe(dark)
    await page.getByLabel('Colors').selectOption('system')
    expect(await background()).toBe(light)
  })

  it('closes a dialog with Escape and returns the focus', async () => {
    await using window = await openWindow(service.httpUrl, { token: TOKENS.admin, at: '/limiters/api' })
    const { page } = window
    const button = page.getByRole('button', { name: 'Make shadow' })
    await button.press('Enter')
    await page.getByRole('dialog').waitFor()
    await page.keyboard.press('Escape')
    await page.getByRole('dialog').waitFor({ state: 'detached' })
    await page.locator('button:focus', { hasText: 'Make shadow' }).waitFor()
  })
})

it('a hidden tab sends no requests, and sends them once it is visible', async () => {
  await using window = await openWindow(service.httpUrl, { token: TOKENS.read })
  const { page } = window
  const show = (isHidden: boolean) =>
    page.evaluate(
      `Object.defineProperty(document, 'hidden', { value: ${isHidden}, configurable: true })
      document.dispatchEvent(new Event('visibilitychange'))`,
    )
  await window.go('/limiters/api')
  await page.getByRole('table', { name: 'Decisions by span' }).waitFor()
  await page.getByText('Live', { exact: true }).waitFor()
  const left = page.waitForEvent('requestfailed', (request) => request.url().endsWith('/v1/admin/live'))
  await show(true)
  await left
  const asked: string[] = []
  page.on('request', (request) => request.url().includes('/v1/') && asked.push(request.url()))
  // This page opens in the background. Visible ones send requests each second.
  await page.getByRole('link', { name: 'Configuration' }).dispatchEvent('click')
  await page.getByText('Loading…').waitFor()
  await page.waitForTimeout(2500)
  expect(asked).toEqual([])
  await show(false)
  await page.getByRole('region', { name: 'Active' }).waitFor()
  await page.getByText('Live', { exact: true }).waitFor()
})

it('the page shows a lost connection and reconnects', async () => {
  const folder = temporaryFolder()
  onTestFinished(folder.remove)
  const file = folder.write(
    'slidegate.json',
    JSON.stringify({ limiters: LIMITERS, auth: { anonymous: 'read' } }),
  )
  // A port that refuses connections while no server listens.
  const host = `127.0.0.1:${await freePort()}`
  await using first = await startProcess(['--config', file, '--http', host])
  await using window = await openWindow(first.url)
  window.expect(/net::ERR_/)
  const { page } = window
  const state = page.getByRole('status').filter({ hasText: /Live|lost/ })
  await expect.poll(() => state.innerText()).toBe('Live')
  const started = page.getByRole('table', { name: 'Instances' }).locator('tbody th')
  const before = await started.innerText()
  first.kill('SIGKILL')
  await first.ended
  await expect.poll(() => state.innerText()).toMatch(/lost/)
  // The last state stays visible.
  expect(await started.innerText()).toBe(before)
  await using _second = await startProcess(['--config', file, '--http', host])
  await expect.poll(() => state.innerText()).toBe('Live')
  await expect.poll(() => started.innerText()).not.toBe(before)
})
