// tier: system
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { rateLimitClient } from '../../server/test/envoy/support/client.ts'
import { envoyService } from '../../server/test/envoy/support/envoy-service.ts'
import { type TestService, testService } from '../../server/test/support/service.ts'
import { openWindow, type TestWindow } from './support/browser.ts'
import { AUTH, LIMITERS, TOKENS } from './support/limiters.ts'
import { ask, askOn } from './support/load.ts'

const EVIL = '<img src=x onerror=window.__hacked=1>'

function keysOf(times: Readonly<Record<string, number>>): string[] {
  return Object.entries(times).flatMap(([key, count]) => new Array<string>(count).fill(key))
}

/** 500 allowed, 120 denied. */
const KNOWN = keysOf({ 'user:1': 124, 'user:2': 124, 'user:3': 124, 'user:4': 124, [EVIL]: 124 })

async function rowsOf(window: TestWindow, table: string): Promise<string[][]> {
  const rows = window.page.getByRole('table', { name: table, exact: true }).locator('tbody tr')
  return Promise.all((await rows.all()).map((row) => row.locator('th, td').allInnerTexts()))
}

/** Polls a table's rows, because each table loads separately. */
function shown<Made>(window: TestWindow, table: string, made: (rows: string[][]) => Made) {
  return expect.poll(async () => made(await rowsOf(window, table)))
}

/** Starts the live decisions. */
async function follow(page: Page): Promise<void> {
  // The page reloads at the first connection, and would miss decisions.
  await page.getByRole('status').getByText('Live', { exact: true }).waitFor()
  const begun = page.waitForResponse(/\/v1\/admin\/tail/)
  await page.getByRole('button', { name: 'Follow' }).click()
  await begun
}

describe('the page of a limiter', () => {
  it('shows the same numbers as the service', async () => {
    await using service = await testService({ limiters: LIMITERS })
    await ask(service, 'api', KNOWN)
    await using window = await openWindow(service.page, { at: '/limiters/api' })
    const { page } = window
    await page.getByText('120 of 620 requests').waitFor()
    const used = ['5 min', '500', '120', '19%', '370 (60%)', expect.any(String), 'none']
    await shown(window, 'Decisions by span', (rows) => rows[3]).toEqual(used)
    const full = expect.stringMatching(/100%\s*hourly: 100/)
    await shown(window, 'Keys', (rows) => rows.sort()).toEqual(
      [EVIL, 'user:1', 'user:2', 'user:3', 'user:4'].map((key) => [key, '124', '24', '19%', '1.24 ×', full]),
    )
    await shown(window, 'Limits', (rows) => rows.map((row) => [row[0], row[3]])).toEqual([
      ['hourly', '120 (19%)'],
      ['stricter', '370 (60%)'],
    ])
    const told = await service.get('/v1/admin/limiters/api/usage')
    expect(told.body.usage[3]).toMatchObject({ allowed: 500, denied: 120, shadowDenied: 370 })
    const history = await service.get('/v1/admin/history?limiter=api')
    const sum = (column: number[]) => column.reduce((all, each) => all + each, 0)
    expect([sum(history.body.allowed), sum(history.body.denied)]).toEqual([500, 120])
  })

  it('shows a key with HTML as text', async () => {
    await using service = await testService({ limiters: LIMITERS })
    await ask(service, 'api', keysOf({ [EVIL]: 110 }))
    await using window = await openWindow(service.page, { at: '/limiters/api' })
    const { page } = window
    await follow(page)
    await ask(service, 'api', keysOf({ [EVIL]: 3 }))
    for (const table of ['Keys', 'Decisions']) {
      const link = page
        .getByRole('table', { name: table, exact: true })
        .getByRole('link', { name: EVIL })
        .first()
      expect(await link.getAttribute('href')).toBe(`#/limiters/api/keys/${encodeURIComponent(EVIL)}`)
    }
    expect(await page.evaluate('window.__hacked')).toBeUndefined()
    expect(await page.locator('main img').count()).toBe(0)
  })

  it('shows the keys and plans of dimensions', async () => {
    await using service = await testService({ limiters: LIMITERS })
    await ask(service, 'login', new Array(8).fill({ user: 'a/b%2F', address: '203.0.113.7' }))
    await using window = await openWindow(service.page, { at: '/limiters/login' })
    const link = window.page.getByRole('link', { name: 'a/b%2F' }).first()
    expect(await link.getAttribute('href')).toBe('#/limiters/login/keys/user/a%2Fb%252F')
    await window.page.getByText('user: 70 in any 15 min; address: 700 in any 15 min').waitFor()
  })

  it('follows decisions until they are paused', async () => {
    await using service = await testService({ limiters: LIMITERS })
    await using window = await openWindow(service.page, { at: '/limiters/api' })
    const { page } = window
    const lines = page.getByRole('table', { name: 'Decisions', exact: true }).locator('tbody tr')
    await page.getByLabel('Denials only').check()
    await follow(page)
    await ask(service, 'api', keysOf({ ann: 102 }))
    await expect.poll(() => lines.count()).toBe(2)
    expect(await lines.first().innerText()).toMatch(/ann\s+1\s+denied by hourly/)
    await page.getByRole('button', { name: 'Pause' }).click()
    await ask(service, 'api', keysOf({ ann: 5 }))
    // Other numbers show that the decisions arrived.
    await page.getByText('7 of 107 requests').waitFor()
    expect(await lines.count()).toBe(2)
  })

  it('keeps following after a key with line separators', async () => {
    await using service = await testService({ limiters: LIMITERS })
    await using window = await openWindow(service.page, { at: '/limiters/api' })
    await follow(window.page)
    await ask(service, 'api', ['a\u2028b\u2029c\rd', 'after'])
    const lines = window.page.getByRole('table', { name: 'Decisions', exact: true }).locator('tbody tr')
    await expect.poll(() => lines.count()).toBe(2)
  })

  it('shows why live decisions fail', async () => {
    await using service = await testService({ limiters: LIMITERS })
    await using window = await openWindow(service.page, { at: '/limiters/gone' })
    window.expect(/404/)
    await follow(window.page)
    const tail = window.page.getByRole('region', { name: 'Live decisions' })
    expect(await tail.getByRole('alert').innerText()).toContain('unknown limiter "gone"')
    expect(await tail.getByText('No decisions').count()).toBe(0)
  })

  it('shows no link for keys that cannot be looked up', async () => {
    const files = {
      'shop.yaml': 'domain: shop\ndescriptors: [{ key: k, rate_limit: { unit: day, requests_per_unit: 9 } }]',
    }
    await using service = await envoyService(files, { limiters: LIMITERS })
    using envoy = rateLimitClient(service.grpcAddress)
    await envoy.ask('shop', [{ k: 'v' }])
    const [long, whole] = ['l'.repeat(257), 'w'.repeat(256)]
    const requests = [long, whole].map((key) => ({ key }))
    const headers = { 'content-type': 'application/json' }
    const body = JSON.stringify({ limiter: 'api', requests })
    await fetch(`${service.httpUrl}/v1/consume`, { method: 'POST', headers, body })
    await using window = await openWindow(service.adminLink!)
    const { page } = window
    await page.getByRole('link', { name: 'shop' }).click()
    await page.getByText('It may be an Envoy domain').waitFor()
    const keys = page.getByRole('table', { name: 'Keys', exact: true }).locator('tbody tr')
    // An empty table has a row, too.
    await expect.poll(() => keys.locator('td.number').allInnerTexts()).toEqual(['1', '0', '0%', '–'])
    expect(await keys.getByRole('link').count()).toBe(0)
    await window.go('/limiters/api')
    await expect.poll(() => keys.count()).toBe(2)
    await keys.getByRole('link', { name: whole }).waitFor()
    expect(await keys.getByRole('link').count()).toBe(1)
    await keys.getByText('stricter: 1').waitFor()
  })

  it('keeps a bounded number of live decisions', async () => {
    await using service = await testService({ limiters: LIMITERS })
    await using window = await openWindow(service.page, { at: '/limiters/api' })
    const { page } = window
    await follow(page)
    const lines = page.getByRole('table', { name: 'Decisions', exact: true }).locator('tbody tr')
    for (const name of ['first', 'second']) {
      const keys = Array.from({ length: 2000 }, (_, i) => `${name}:${i}`)
      await ask(service, 'api', keys)
      await lines.getByText(`${name}:`).first().waitFor()
    }
    await expect.poll(() => lines.count()).toBe(30)
    // They have no second page.
    expect(await page.getByRole('navigation', { name: 'Pages of Decisions' }).count()).toBe(0)
  })

  it('names the key that has most denials', async () => {
    await using service = await testService({ limiters: LIMITERS })
    await using window = await openWindow(service.page, { at: '/limiters/api' })
    const { page } = window
    const verdict = page.locator('[data-verdict]')
    await expect.poll(() => verdict.getAttribute('data-verdict')).toBe('none')
    await ask(service, 'api', [
      ...Array.from({ length: 40 }, (_, i) => `user:${i}`),
      ...keysOf({ flood: 400 }),
    ])
    await expect.poll(() => verdict.getAttribute('data-verdict')).toBe('abuse')
    expect(await verdict.innerText()).toContain('abuse by flood')
    const named = page.getByRole('listitem').filter({ has: page.getByRole('link', { name: 'flood' }) })
    // Keys and seconds load one after the other, so the first text may be about a part of them.
    await expect
      .poll(() => named.innerText())
      .toBe('flood 100% of the denials, 75% of its requests denied, demand 4 × the limit')
    expect(await named.getByRole('link').getAttribute('href')).toBe('#/limiters/api/keys/flood')
  })

  it('sorts and filters keys', async () => {
    await using service = await testService({ limiters: LIMITERS })
    const busy = { [EVIL]: 130, polite: 90, partner: 110, rare: 1 }
    await ask(service, 'api', keysOf(busy))
    await using window = await openWindow(service.page, { at: '/limiters/api' })
    const { page } = window
    const order = (rows: string[][]) => rows.map(([key]) => key)
    await shown(window, 'Keys', order).toEqual([EVIL, 'partner', 'polite', 'rare'])
    const keys = page.getByRole('table', { name: 'Keys', exact: true })
    await keys.getByRole('button', { name: 'Demand' }).click()
    await shown(window, 'Keys', (rows) => rows.map((row) => row[4])).toEqual([
      '1.3 ×',
      '1.1 ×',
      '0.9 ×',
      '0.01 ×',
    ])
    await keys.getByRole('button', { name: 'Requests' }).click()
    await keys.getByRole('button', { name: 'Requests' }).click()
    await shown(window, 'Keys', order).toEqual(['rare', 'polite', 'partner', EVIL])
    await page.getByLabel('Filter by key').first().fill('PART')
    await shown(window, 'Keys', order).toEqual(['partner'])
  })
})

describe('changes to limits', () => {
  let service: TestService
  beforeAll(async () => {
    service = await testService({ limiters: LIMITERS, auth: AUTH })
  })
  afterAll(() => service[Symbol.asyncDispose]())
  const admin = { authorization: `Bearer ${TOKENS.admin}` }

  it('need the role admin, on the page and in the service', async () => {
    await using window = await openWindow(service.page, { at: '/limiters/api', token: TOKENS.read })
    const { page } = window
    await page.getByRole('table', { name: 'Limits', exact: true }).getByText('hourly').waitFor()
    const buttons = await page.getByRole('button').allInnerTexts()
    expect(buttons.filter((name) => /enforce|shadow|configured/i.test(name))).toEqual([])
    const status = await page.evaluate(`fetch('./v1/admin/shadow', {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: 'Bearer ${TOKENS.read}' },
      body: JSON.stringify({ limiter: 'api', limit: 'hourly', shadow: true }),
    }).then((response) => response.status)`)
    expect(status).toBe(403)
    const { body } = await service.get('/v1/admin/limiters', admin)
    expect(body.limiters[0].shadowSettings).toEqual({})
    window.expect(/status of 403/)
  })

  it('need a confirmation, and are in the audit', async () => {
    await using window = await openWindow(service.page, { at: '/limiters/api', token: TOKENS.admin })
    const { page } = window
    const row = page.getByRole('row', { name: /stricter/ })
    const shadowed = async () => {
      const { body } = await service.get('/v1/admin/limiters', admin)
      return body.limiters[0].shadowSettings
    }
    await row.getByRole('button', { name: 'Enforce' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Cancel' }).click()
    expect(await shadowed()).toEqual({})

    await row.getByRole('button', { name: 'Enforce' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Enforce' }).click()
    await row.getByText('enforced').waitFor()
    expect(await shadowed()).toEqual({ stricter: false })
    await page.getByRole('dialog').waitFor({ state: 'detached' })

    await row.getByRole('button', { name: 'As configured' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Restore' }).click()
    await row.getByText('shadow', { exact: true }).waitFor()
    expect(await shadowed()).toEqual({})

    await window.go('/audit')
    await page.getByRole('table', { name: 'Changes' }).getByText('operator').first().waitFor()
    const told = await service.get('/v1/admin/audit', admin)
    const rows = await rowsOf(window, 'Changes')
    expect(rows).toHaveLength(told.body.entries.length)
    expect(rows.map(([, what, limiter, result]) => [what, limiter, result])).toEqual([
      ['shadow: stricter: enforced → as configured', 'api', 'done\nUndo'],
      ['shadow: stricter: as configured → enforced', 'api', 'done\nUndo'],
    ])
  })
})

it('the page of a limiter stays smooth with 10,000 keys', async () => {
  await using service = await testService({ limiters: LIMITERS })
  await using window = await openWindow(service.page, { at: '/limiters/api' })
  const { page } = window
  await page.getByRole('button', { name: 'Follow' }).click()
  await window.watchLongTasks()
  let round = 0
  await using _ = askOn(async () => {
    const first = 500 * round++
    await ask(
      service,
      'api',
      Array.from({ length: 500 }, (_, i) => `user:${(first + i) % 10_000}`),
    )
  })
  await page
    .getByText(/≈ (9,[5-9]\d\d|10K|10\.\dK) callers/)
    .first()
    .waitFor()
  expect(await window.longTaskMs()).toBeLessThan(1000)
})
