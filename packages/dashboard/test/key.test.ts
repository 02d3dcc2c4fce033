// tier: system
import type { Locator, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type TestService, testService } from '../../server/test/support/service.ts'
import { violationsIn } from './support/axe.ts'
import { openWindow, type WindowOptions } from './support/browser.ts'

const ADMIN = 'a'.repeat(40)
const READER = 'r'.repeat(40)
const as = (token: string) => ({ authorization: `Bearer ${token}` })
const BOSS = as(ADMIN)

const HOSTILE = '<img src=x onerror=window.__hacked=1>'

let service: TestService

beforeAll(async () => {
  service = await testService({
    auth: {
      tokens: [
        { name: 'boss', role: 'admin', token: ADMIN },
        { name: 'looker', role: 'read', token: READER },
      ],
    },
    limiters: {
      api: {
        limits: [
          { kind: 'slidingWindow', limit: 40, window: '1m' },
          { kind: 'slidingWindow', limit: 100, window: '10m', precision: '1s', name: 'slow' },
        ],
        ban: { after: 50, within: '1h', for: '1h' },
      },
      frozen: { limits: [{ kind: 'slidingWindow', limit: 5, window: '1m' }], overrides: false },
      hashed: { limits: [{ kind: 'slidingWindow', limit: 5, window: '1m' }], hashKeys: 'h'.repeat(40) },
      busy: { limits: [{ kind: 'slidingWindow', limit: 5000, window: '10m', precision: 1 }] },
      kinds: {
        limits: [
          // Longer than any test, and independent of the time of day.
          { kind: 'fixedWindow', limit: 20, window: '1h', align: 'first-hit', name: 'fixed' },
          { kind: 'tokenBucket', capacity: 30, refill: 1, interval: '1m', name: 'bucket' },
          { kind: 'slidingCounter', limit: 50, window: '1h', name: 'counter' },
        ],
      },
      login: {
        dimensions: {
          user: [{ kind: 'slidingWindow', limit: 5, window: '1m' }],
          address: [{ kind: 'slidingWindow', limit: 9, window: '1m' }],
        },
      },
    },
  })
})

afterAll(async () => {
  await service?.[Symbol.asyncDispose]()
})

async function consume(limiter: string, key: unknown, cost = 1): Promise<void> {
  const { status } = await service.post('/v1/consume', { limiter, key, cost }, BOSS)
  expect([200, 429]).toContain(status)
}

async function explain(limiter: string, key: unknown) {
  const { body } = await service.post('/v1/explain', { limiter, key, charges: true }, BOSS)
  return body
}

function placeOf(limiter: string, key: string, dimension?: string): string {
  const of = dimension === undefined ? '' : `${dimension}/`
  return `/limiters/${limiter}/keys/${of}${encodeURIComponent(key)}`
}

function open(limiter: string, key: string, options: WindowOptions = {}) {
  return openWindow(service.httpUrl, { token: ADMIN, at: placeOf(limiter, key), ...options })
}

function panelOf(page: Page, limit: string): Locator {
  return page.locator(`[data-limit="${limit}"]`)
}

/** The times and units of the drawn marks. */
function marksOf(page: Page, limit: string) {
  return panelOf(page, limit)
    .locator('.mark')
    .evaluateAll((marks) =>
      marks.map((mark) => [mark.getAttribute('data-at'), mark.getAttribute('data-units')].map(Number)),
    )
}

async function usedOn(page: Page, limit: string): Promise<number> {
  return Number(await panelOf(page, limit).locator('.used').textContent())
}

/** Opens a dialog by its button. */
async function dialogOf(page: Page, button: string): Promise<Locator> {
  await page.getByRole('button', { name: button, exact: true }).click()
  const dialog = page.getByRole('dialog')
  await dialog.waitFor()
  return dialog
}

async function press(dialog: Locator, button: string): Promise<void> {
  await dialog.getByRole('button', { name: button, exact: true }).click()
  await dialog.waitFor({ state: 'detached' })
}

/** The kinds of the key's changes as shown, newest first. */
function changesOn(page: Page): Promise<string[]> {
  const rows = page.getByRole('region', { name: 'Changes' }).locator('tbody tr')
  return rows.evaluateAll((all) => all.map((row) => row.children[1]?.textContent?.split(':')[0] ?? ''))
}

describe('the window picture', () => {
  it('draws a mark per charge, as high as its units, and shows the usage', async () => {
    for (const cost of [1, 3, 2]) await consume('api', 'drawn', cost)
    await using window = await open('api', 'drawn')
    const { page } = window
    await panelOf(page, '40-per-1m').locator('.mark').first().waitFor()
    const told = await explain('api', 'drawn')
    const charges = told.limits[0].charges.map(({ atMs, units }: { atMs: number; units: number }) => [
      atMs,
      units,
    ])
    expect(charges.reduce((sum: number, [, units]: number[]) => sum + units!, 0)).toBe(6)
    expect(await marksOf(page, '40-per-1m')).toEqual(charges)
    expect(await usedOn(page, '40-per-1m')).toBe(told.limits[0].used)
    // A window that slides in steps of a second merges them.
    expect((await marksOf(page, 'slow')).map(([, units]) => units).reduce((a, b) => a! + b!, 0)).toBe(6)
    const heights = await panelOf(page, '40-per-1m')
      .locator('.mark')
      .evaluateAll((marks) =>
        marks.map((mark) => [mark.getAttribute('data-units'), mark.getAttribute('height')].map(Number)),
      )
    const most = Math.max(...heights.map(([, height]) => height!))
    for (const [units, height] of heights)
      expect(height).toBeCloseTo((most * units!) / Math.max(...heights.map(([u]) => u!)))
    await consume('api', 'drawn', 4)
    await expect.poll(() => usedOn(page, '40-per-1m')).toBe(10)
    expect((await marksOf(page, '40-per-1m')).at(-1)![1]).toBe(4)
  })

  it('describes each charge by keyboard, and lists when units become free', async () => {
    await consume('api', 'steered', 2)
    await new Promise((resolve) => setTimeout(resolve, 5))
    await consume('api', 'steered', 5)
    await using window = await open('api', 'steered')
    const panel = panelOf(window.page, '40-per-1m')
    const slider = panel.getByRole('slider', { name: 'Charges to 40-per-1m' })
    await slider.focus()
    await slider.press('End')
    await expect
      .poll(() => panel.locator('.picture-note').textContent())
      .toMatch(/^5 units at .* free in \d+ s$/)
    await slider.press('ArrowLeft')
    await expect.poll(() => panel.locator('.picture-note').textContent()).toMatch(/^2 units at /)
    expect(await slider.getAttribute('aria-valuenow')).toBe('1')
    const rows = panel.getByRole('table', { name: /become free/ }).locator('tbody tr')
    expect(await rows.last().locator('td').last().textContent()).toBe('7')
  })

  it('moves between requests: a charge drifts to the edge', async () => {
    await consume('api', 'moving')
    await using window = await open('api', 'moving')
    const { page } = window
    await page.emulateMedia({ reducedMotion: 'no-preference' })
    const panel = panelOf(page, '40-per-1m')
    await panel.locator('.mark').waitFor()
    const placesOf = () =>
      panel.evaluate((element) => {
        const mark = element.querySelector('.mark')!.getBoundingClientRect().left
        return mark - element.querySelector('.edge')!.getBoundingClientRect().left
      })
    const first = await placesOf()
    expect(first).toBeGreaterThan(100)
    const places = await panel.evaluate(async (element) => {
      const seen = new Set<string | null>()
      for (let i = 0; i < 20; i++) {
        await new Promise(requestAnimationFrame)
        seen.add(element.querySelector('.moving')!.getAttribute('transform'))
      }
      return seen.size
    })
    // It moves more often than responses arrive, which is once per second.
    expect(places).toBeGreaterThan(5)
    await expect.poll(placesOf).toBeLessThan(first - 0.05)
    await service.post('/v1/admin/reset', { limiter: 'api', key: 'moving' }, BOSS)
  })

  it('stays smooth with more charges than pixels, and counts those that are not shown', async () => {
    const { limiter } = service.service.get('busy')
    for (let i = 0; i < 600; i++) {
      await limiter.consume('many')
      // Charges in the same millisecond would be merged. A timer may fire early.
      const nextMs = performance.now() + 1
      while (performance.now() < nextMs) await new Promise(setImmediate)
    }
    await using window = await open('busy', 'many')
    const { page } = window
    await page.emulateMedia({ reducedMotion: 'no-preference' })
    const panel = panelOf(page, '5000-per-10m')
    await panel.locator('.mark').first().waitFor({ state: 'attached' })
    const { charges, olderUnits } = (await explain('busy', 'many')).limits[0]
    expect([charges.length, olderUnits]).toEqual([512, 88])
    expect((await marksOf(page, '5000-per-10m')).length).toBe(512)
    expect(await usedOn(page, '5000-per-10m')).toBe(600)
    expect(await panel.textContent()).toContain('88 older units are not shown')
    await window.watchLongTasks()
    // Each response redraws it, and each frame moves it.
    for (let i = 0; i < 4; i++) await page.waitForResponse(/\/v1\/explain/)
    expect(await window.longTaskMs()).toBeLessThan(1000)
  })

  it('shows past and future usage for kinds without times', async () => {
    await consume('kinds', 'k', 8)
    await using window = await open('kinds', 'k')
    const { page } = window
    const told = await explain('kinds', 'k')
    await panelOf(page, 'fixed').locator('.fixed-window').waitFor()
    const end = await panelOf(page, 'fixed').locator('.fixed-window').getAttribute('data-end')
    expect(Math.abs(Number(end) - told.atMs - told.limits[0].resetAfterMs)).toBeLessThan(2)
    for (const name of ['fixed', 'bucket', 'counter']) {
      expect(await panelOf(page, name).locator('.mark').count()).toBe(0)
      expect(await panelOf(page, name).locator('.level.fall').getAttribute('d')).toMatch(/^M.*Z$/)
    }
  })
})

describe('an operator', () => {
  it('resets, blocks, unblocks and overrides a key, and finds it in the audit', async () => {
    await consume('api', 'ann', 7)
    await using window = await open('api', 'ann')
    const { page } = window

    const reset = await dialogOf(page, 'Reset…')
    expect(await reset.textContent()).toContain('the usage of ann in api (40-per-1m: 7, slow: 7)')
    await reset.getByRole('button', { name: 'Cancel' }).click()
    expect((await explain('api', 'ann')).limits[0].used).toBe(7)
    await press(await dialogOf(page, 'Reset…'), 'Reset')
    expect((await explain('api', 'ann')).limits[0].used).toBe(0)
    await expect.poll(() => usedOn(page, '40-per-1m')).toBe(0)
    await expect.poll(() => changesOn(page)).toEqual(['reset'])

    const block = await dialogOf(page, 'Block…')
    await block.getByLabel('Duration').fill('5 minutes')
    expect(await block.getByRole('button', { name: 'Block', exact: true }).isDisabled()).toBe(true)
    await block.getByText('“5 minutes” isn’t a duration. Write a number and a unit: 5m.').waitFor()
    await block.getByLabel('Duration').fill('5m')
    await press(block, 'Block')
    const { blockedMs } = await explain('api', 'ann')
    expect(blockedMs).toBeGreaterThan(200_000)
    expect(blockedMs).toBeLessThanOrEqual(300_000)
    await expect.poll(() => page.locator('.verdict-panel .panel-head').textContent()).toContain('blocked for')
    await press(await dialogOf(page, 'Unblock…'), 'Unblock')
    expect((await explain('api', 'ann')).blockedMs).toBe(0)

    const override = await dialogOf(page, 'Override…')
    const unnamed = override.getByRole('group', { name: '40-per-1m' })
    expect(await unnamed.textContent()).toContain('give it a name in the configuration')
    expect(await unnamed.getByLabel('Limit').isDisabled()).toBe(true)
    const named = override.getByRole('group', { name: 'slow' })
    const set = override.getByRole('button', { name: 'Set override' })
    expect(await set.isDisabled()).toBe(true)
    await named.getByLabel('Limit').fill('300')
    await override.getByLabel('Duration').fill('30m')
    await press(override, 'Set override')
    const told = await explain('api', 'ann')
    expect(told.limits).toMatchObject([{ limit: 40 }, { name: 'slow', limit: 300, windowMs: 600_000 }])
    expect(told.overrides).toEqual([
      { key: 'ann', limits: { slow: { limit: 300 } }, expiresInMs: expect.any(Number) },
    ])
    expect(told.overrides[0].expiresInMs).toBeGreaterThan(1_700_000)
    await panelOf(page, 'slow').getByText('override: 300', { exact: true }).waitFor()
    expect(await panelOf(page, '40-per-1m').getByText('override').count()).toBe(0)
    await page.getByText(/^slow 300, expires in (30 min|29 min \d+ s)$/).waitFor()

    const again = await dialogOf(page, 'Change the override…')
    const fields = again.getByRole('group', { name: 'slow' })
    expect(await fields.getByLabel('Limit').inputValue()).toBe('300')
    expect(await fields.getByLabel('Limit').getAttribute('placeholder')).toBe('100')
    expect(await fields.getByLabel('Window').inputValue()).toBe('')
    await again.getByLabel('Exempt').check()
    await again.getByLabel('Duration').fill('')
    await press(again, 'Set override')
    expect(await explain('api', 'ann')).toMatchObject({
      limits: [{ shadow: true }, { name: 'slow', limit: 100, shadow: true }],
      overrides: [{ key: 'ann', exempt: true }],
    })
    await page.getByText('exempt: limits count but never deny, never expires').waitFor()
    await press(await dialogOf(page, 'Delete the override…'), 'Delete')
    expect((await explain('api', 'ann')).overrides).toEqual([])
    await panelOf(page, 'slow').getByText('override', { exact: true }).waitFor({ state: 'detached' })

    await expect
      .poll(() => changesOn(page))
      .toEqual(['delete override', 'override', 'override', 'unblock', 'block', 'reset'])
    const { body } = await service.get('/v1/admin/audit?count=6', BOSS)
    expect(
      body.entries.map(({ who, what, key }: { who: string; what: string; key: string }) => [who, what, key]),
    ).toEqual(
      ['delete override', 'override', 'override', 'unblock', 'block', 'reset'].map((what) => [
        'boss',
        what,
        'ann',
      ]),
    )
  })

  it('overrides the only limit of a dimension, and blocks without an expiry', async () => {
    await using window = await openWindow(service.httpUrl, {
      token: ADMIN,
      at: placeOf('login', 'eve', 'user'),
    })
    const { page } = window
    const override = await dialogOf(page, 'Override…')
    await override.getByLabel('Limit', { exact: true }).fill('2')
    await override.getByLabel('Duration').fill('')
    await press(override, 'Set override')
    await page.getByText('2, never expires').waitFor()
    const block = await dialogOf(page, 'Block…')
    await block.getByLabel('Duration').fill('')
    await press(block, 'Block')
    await page.getByText('blocked until unblocked', { exact: true }).waitFor()
    await page.getByText('is denied until the key is unblocked').waitFor()
    expect(await explain('login', { user: 'eve' })).toMatchObject({
      blockedMs: null,
      limits: [{ name: 'user.5-per-1m', limit: 2 }],
      overrides: [{ key: 'eve', dimension: 'user', limits: { '': { limit: 2 } }, blockedMs: null }],
    })
    await window.go('/limiters/login')
    const rows = page.getByRole('table', { name: 'Overrides' }).locator('tbody tr')
    await rows.nth(1).waitFor()
    expect(await rows.evaluateAll((all) => all.map((row) => row.children[1]?.textContent))).toEqual([
      '2',
      'blocked',
    ])
  })

  it('with overrides: false sees only the reset button', async () => {
    await using window = await open('frozen', 'ann')
    const { page } = window
    await page.getByRole('button', { name: 'Reset…' }).waitFor()
    expect(await page.getByRole('button', { name: /Block|Override/ }).count()).toBe(0)
    await window.go('/limiters/frozen')
    await page.getByText('Disabled by overrides: false in this limiter').waitFor()
  })

  it('sees what is wrong with a field, and why the button is disabled', async () => {
    await using window = await open('api', 'typo')
    const { page } = window
    const override = await dialogOf(page, 'Override…')
    const set = override.getByRole('button', { name: 'Set override' })
    const described = async (what: Locator) => {
      const id = await what.getAttribute('aria-describedby')
      return id === null ? undefined : page.locator(`[id="${id}"]`).textContent()
    }
    expect(await described(set)).toBe('Enter a number for at least one limit, or check Exempt.')
    const [limit, span] = ['Limit', 'Window'].map((name) =>
      override.getByRole('group', { name: 'slow' }).getByLabel(name),
    ) as [Locator, Locator]
    await limit.fill('abc')
    await span.fill('1 min')
    expect(await limit.getAttribute('aria-invalid')).toBe('true')
    expect(await described(limit)).toBe('“abc” isn’t a positive whole number. Example: 300.')
    expect(await described(span)).toBe('“1 min” isn’t a duration. Write a number and a unit: 1m.')
    expect(await described(set)).toBe('Correct the limit of slow and the window of slow to set the override.')
    expect(await violationsIn(window)).toEqual([])
    // Enter and the button lead to the first wrong field, and send nothing.
    for (const pressed of [span, set]) {
      await pressed.press('Enter')
      expect(await limit.evaluate((input) => input === document.activeElement)).toBe(true)
    }
    expect((await explain('api', 'typo')).overrides).toEqual([])
    await limit.fill('300')
    await span.fill('1m')
    expect(await described(set)).toBeUndefined()
    await press(override, 'Set override')
    expect((await explain('api', 'typo')).overrides).toMatchObject([
      { limits: { slow: { limit: 300, windowMs: 60_000 } } },
    ])
  })

  it('sees an error of the service in the dialog', async () => {
    await using window = await open('api', 'refused')
    const { page } = window
    window.expect(/status of 400/)
    const override = await dialogOf(page, 'Override…')
    await override.getByRole('group', { name: 'slow' }).getByLabel('Window').fill('9ms')
    await override.getByRole('button', { name: 'Set override' }).click()
    expect(await override.getByRole('alert').textContent()).toMatch(/9ms/)
    await override.getByRole('button', { name: 'Cancel' }).click()
    await override.waitFor({ state: 'detached' })
  })

  it('needs the role admin, for the buttons and in the service', async () => {
    await consume('api', 'seen')
    await using window = await open('api', 'seen', { token: READER })
    const { page } = window
    await panelOf(page, 'slow').waitFor()
    expect(await page.getByRole('button', { name: /Reset|Block|Unblock|Override/ }).count()).toBe(0)
    for (const [path, more] of [
      ['reset', {}],
      ['block', { ttl: '1m' }],
      ['unblock', {}],
    ] as const) {
      const body = { limiter: 'api', key: 'seen', ...more }
      expect((await service.post(`/v1/admin/${path}`, body, as(READER))).status).toBe(403)
    }
    expect((await explain('api', 'seen')).limits[0].used).toBe(1)
  })

  it('acts with the keyboard alone', async () => {
    await consume('api', 'typed', 2)
    await using window = await open('api', 'typed')
    const { page } = window
    await panelOf(page, 'slow').waitFor()
    const tabTo = async (name: string): Promise<void> => {
      for (let i = 0; i < 60; i++) {
        await page.keyboard.press('Tab')
        if ((await page.evaluate(() => document.activeElement?.textContent)) === name) return
      }
      throw new Error(`the focus never comes to ${name}`)
    }
    await tabTo('Reset…')
    await page.keyboard.press('Enter')
    await page.getByRole('dialog').waitFor()
    await tabTo('Reset')
    await page.keyboard.press('Enter')
    await expect.poll(async () => (await explain('api', 'typed')).limits[0].used).toBe(0)
    await page.getByRole('dialog').waitFor({ state: 'detached' })
    // The focus returns to the button.
    expect(await page.evaluate(() => document.activeElement?.textContent)).toBe('Reset…')
  })
})

it('the changes of a limiter with hashKeys are unknown', async () => {
  await service.post('/v1/admin/reset', { limiter: 'hashed', key: 'zoe' }, BOSS)
  await using window = await open('hashed', 'zoe')
  await window.page.getByText('the audit log stores this limiter’s keys as hashes').waitFor()
})

it('live decisions only include this key', async () => {
  await using window = await open('api', 'followed')
  const { page } = window
  const rows = page.getByRole('table', { name: 'Decisions', exact: true }).locator('tbody tr')
  await expect
    .poll(
      async () => {
        await consume('api', 'another')
        await consume('api', 'followed', 41)
        return rows.filter({ hasText: 'denied' }).count()
      },
      { interval: 300 },
    )
    .toBeGreaterThan(1)
  expect(await rows.filter({ hasText: 'allowed' }).count()).toBe(0)
})

it('the page shows when a request with a cost would be admitted', async () => {
  await consume('api', 'asked', 35)
  await using window = await open('api', 'asked')
  const { page } = window
  const verdict = page.locator('.verdict')
  await expect.poll(() => verdict.textContent()).toMatch(/admitted now/)
  await page.getByLabel('A request costing').fill('6')
  await expect.poll(() => verdict.textContent()).toMatch(/admitted in (\d+ s|1 min): 40-per-1m is full/)
  await page.getByLabel('A request costing').fill('41')
  await expect.poll(() => verdict.textContent()).toMatch(/never admitted: 41 exceeds the limit 40-per-1m/)
  await page.getByLabel('A request costing').fill('no number')
  await expect.poll(() => verdict.textContent()).toMatch(/positive whole number/)
})

it('a form looks up a key in a dimension', async () => {
  await consume('login', { user: 'ann/1', address: '192.0.2.7' }, 2)
  await using window = await open('api', 'anything')
  const { page } = window
  const form = page.getByRole('search', { name: 'Look up a key' })
  await form.getByLabel('Limiter').selectOption('login')
  await form.getByLabel('Dimension').selectOption('address')
  await form.getByLabel('Key').fill('192.0.2.7')
  await form.getByRole('button', { name: 'Look up' }).click()
  await panelOf(page, 'address.9-per-1m').waitFor()
  expect(await usedOn(page, 'address.9-per-1m')).toBe(2)
  expect(await page.evaluate(() => location.hash)).toBe('#/limiters/login/keys/address/192.0.2.7')
  await window.go(placeOf('login', 'ann/1', 'user'))
  await panelOf(page, 'user.5-per-1m').waitFor()
  expect(await page.getByRole('heading', { level: 1 }).textContent()).toBe('ann/1')
  expect(await usedOn(page, 'user.5-per-1m')).toBe(2)
})

it('a key with HTML is shown as text everywhere', async () => {
  await consume('api', HOSTILE, 3)
  await service.post('/v1/admin/unblock', { limiter: 'api', key: HOSTILE }, BOSS)
  await using window = await open('api', HOSTILE)
  const { page } = window
  await panelOf(page, 'slow').waitFor()
  expect(await page.getByRole('heading', { level: 1 }).textContent()).toBe(HOSTILE)
  for (const button of ['Reset…', 'Block…', 'Override…']) {
    const dialog = await dialogOf(page, button)
    expect(await dialog.textContent()).toContain(HOSTILE)
    await dialog.getByRole('button', { name: 'Cancel' }).click()
    await dialog.waitFor({ state: 'detached' })
  }
  expect(await usedOn(page, '40-per-1m')).toBe(3)
  await expect.poll(() => changesOn(page)).toEqual(['unblock'])
  expect(await page.locator('main img').count()).toBe(0)
  expect(await page.evaluate(() => '__hacked' in globalThis)).toBe(false)
})

it.each(['light', 'dark'] as const)(
  'the page of a key passes axe and fits on a phone in %s',
  async (theme) => {
    await consume('api', 'fine', 9)
    await using window = await open('api', 'fine', { theme })
    const { page } = window
    await panelOf(page, 'slow').locator('.mark').first().waitFor()
    const isCutOff = () => page.evaluate(() => document.documentElement.scrollWidth > innerWidth)
    for (const size of [
      { width: 1280, height: 800 },
      { width: 390, height: 844 },
    ]) {
      await page.setViewportSize(size)
      // Pictures are redrawn after a resize.
      await expect.poll(isCutOff).toBe(false)
      expect(await violationsIn(window)).toEqual([])
      const dialog = await dialogOf(page, 'Override…')
      expect(await violationsIn(window)).toEqual([])
      await expect.poll(isCutOff).toBe(false)
      await press(dialog, 'Cancel')
    }
  },
)
