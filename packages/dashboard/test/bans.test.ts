// tier: system
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { type TestService, testService } from '../../server/test/support/service.ts'
import { startRedis } from '../../slidegate/test/support/redis-server.ts'
import { violationsIn } from './support/axe.ts'
import { openWindow } from './support/browser.ts'
import { AUTH, LIMITERS, TOKENS } from './support/limiters.ts'
import { ask } from './support/load.ts'

const PHONE = { width: 390, height: 844 }
const operator = { authorization: `Bearer ${TOKENS.admin}` }

let service: TestService
let stopRedis: () => Promise<void>
beforeAll(async () => {
  const redis = await startRedis()
  stopRedis = () => redis.stop()
  const limiters = { ...LIMITERS, api: { ...LIMITERS.api!, ban: { after: 2, within: '1h', for: '5m' } } }
  service = await testService({ limiters, auth: AUTH, store: { redis: { url: redis.url } } })
})
afterAll(async () => {
  await service[Symbol.asyncDispose]()
  await stopRedis()
})

/** A key that is banned by `api` and blocked by hand at `login`. */
let key: string
let keys = 0
beforeEach(async () => {
  key = `user:${++keys}`
  await ask(service, 'api', new Array<string>(102).fill(key), operator)
  await service.post(
    '/v1/admin/block',
    { limiter: 'login', key: { user: key, address: null }, ttl: '1h' },
    operator,
  )
  await expect
    .poll(async () => {
      const { body } = await service.get('/v1/admin/bans', operator)
      return body.bans.filter((ban: { key: string }) => ban.key === key).length
    })
    .toBe(2)
})

const rowsOf = (page: Page) =>
  page.getByRole('region', { name: 'Bans and blocks' }).getByRole('row').filter({ hasText: key })

describe('bans and blocks', () => {
  it('the overview lists them with cause and end, and links to the key', async () => {
    await using window = await openWindow(service.httpUrl, { token: TOKENS.read })
    const { page } = window
    const [block, ban] = [rowsOf(page).nth(0), rowsOf(page).nth(1)]
    await ban.waitFor()
    expect(await block.textContent()).toMatch(/user user:\d+loginblockin (1 h|59 min).*by operator/)
    expect(await ban.textContent()).toMatch(/user:\d+apibanin [45] min.*12 denials in 1 h, by hourly/)
    // Readers can't end them.
    expect(await page.getByRole('button', { name: 'Unblock' }).count()).toBe(0)
    await ban.getByRole('link', { name: key }).click()
    await page.getByText(/^banned for [45] min/).waitFor()
    await page.getByText('Banned since').waitFor()
  })

  it('an operator ends them by keyboard, in a dialog', async () => {
    await using window = await openWindow(service.httpUrl, { token: TOKENS.admin, at: '/limiters/api' })
    const { page } = window
    await rowsOf(page)
      .getByRole('button', { name: `Unblock… ${key}` })
      .focus()
    await page.keyboard.press('Enter')
    const dialog = page.getByRole('dialog', { name: 'End this ban?' })
    await dialog.getByText('forgets the key’s denials and earlier bans').waitFor()
    expect(await violationsIn(window)).toEqual([])
    await dialog.getByLabel('Reason').fill('a false alarm')
    await dialog.getByRole('button', { name: 'Unblock' }).press('Enter')
    await dialog.waitFor({ state: 'detached' })
    await rowsOf(page).waitFor({ state: 'detached' })
    const { body } = await service.post('/v1/explain', { limiter: 'api', key }, operator)
    expect(body.blockedMs).toBe(0)
    const audit = await service.get('/v1/admin/audit', operator)
    expect(audit.body.entries[0]).toMatchObject({ what: 'unblock', reason: 'a false alarm' })
  })

  it.each([
    ['overview', '/'],
    ['limiter page', '/limiters/login'],
  ])('the list on the %s passes axe, and fits on a phone', async (_, at) => {
    await using window = await openWindow(service.httpUrl, { token: TOKENS.admin, at })
    const { page } = window
    await rowsOf(page).first().waitFor()
    expect(await violationsIn(window)).toEqual([])
    await page.emulateMedia({ colorScheme: 'dark' })
    await page.setViewportSize(PHONE)
    await expect.poll(() => page.evaluate('document.documentElement.scrollWidth')).toBe(PHONE.width)
    expect(await violationsIn(window)).toEqual([])
  })
})

describe('the search field in the header', () => {
  const field = (page: Page) => page.getByRole('searchbox', { name: 'Find a key in all limiters' })

  it.each(['/', 'Control+k', 'Meta+k'])('%s focuses it', async (shortcut) => {
    await using window = await openWindow(service.httpUrl, { token: TOKENS.read })
    const { page } = window
    await field(page).waitFor()
    await page.keyboard.press(shortcut)
    await page.locator('input:focus').waitFor()
    expect(await field(page).evaluate((element) => element === element.ownerDocument.activeElement)).toBe(
      true,
    )
    expect(await field(page).inputValue()).toBe('')
    // A slash can still be typed.
    await page.keyboard.type('a/b')
    expect(await field(page).inputValue()).toBe('a/b')
  })

  it('lists the limiters that know a key, each with a link to its page', async () => {
    await using window = await openWindow(service.httpUrl, { token: TOKENS.read, at: '/audit' })
    const { page } = window
    await field(page).waitFor()
    await page.keyboard.press('/')
    await page.keyboard.type(key)
    await page.keyboard.press('Enter')
    await page.locator('h1:focus', { hasText: `Find ${key}` }).waitFor()
    const row = (limiter: string) =>
      page.getByRole('row').filter({ has: page.getByRole('link', { name: limiter, exact: true }) })
    expect(await row('api').textContent()).toMatch(/banned for .*hourly: 100 of 100/)
    expect(await row('login user').textContent()).toMatch(/blocked for/)
    expect(await page.getByRole('row').count()).toBe(3)
    expect(await violationsIn(window)).toEqual([])
    await page.getByRole('link', { name: 'login user', exact: true }).click()
    await page.getByRole('heading', { level: 1, name: key }).waitFor()
    await page.getByText(/^blocked for/).waitFor()
    await page.goBack()
    await page.getByRole('heading', { level: 1, name: `Find ${key}` }).waitFor()
  })

  it('says that no limiter knows a key, and takes any key', async () => {
    await using window = await openWindow(service.httpUrl, {
      token: TOKENS.read,
      size: PHONE,
      theme: 'dark',
    })
    const { page } = window
    const hostile = `<b>50%</b>/../"${'k'.repeat(500)}`
    await field(page).fill(hostile)
    await field(page).press('Enter')
    await page.getByText('No limiter knows this key').waitFor()
    expect(await page.getByRole('heading', { level: 1 }).textContent()).toBe(`Find ${hostile}`)
    await expect.poll(() => page.evaluate('document.documentElement.scrollWidth')).toBe(PHONE.width)
    expect(await violationsIn(window)).toEqual([])
  })

  it('users who may not read have no field', async () => {
    await using window = await openWindow(service.httpUrl, { token: TOKENS.check })
    await window.page.getByText('program has the check role').waitFor()
    expect(await window.page.getByRole('search').count()).toBe(0)
  })
})
