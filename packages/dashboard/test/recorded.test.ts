// tier: system
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type TestRedis, withRedis } from '../../server/test/support/redis.ts'
import { type TestService, testService } from '../../server/test/support/service.ts'
import { sharesOf } from '../src/key/shares.ts'
import { violationsIn } from './support/axe.ts'
import { openWindow, type TestWindow, type WindowOptions } from './support/browser.ts'
import { recordWeek } from './support/recorded.ts'

/** A folder for pictures. */
const PICTURES = process.env.PICTURES

let redis: TestRedis
let service: TestService
beforeAll(async () => {
  redis = await withRedis()
  await recordWeek(redis.url, (minute) => {
    const tide = Math.round(60 + 40 * Math.sin(minute / 200))
    const ann = minute % 7 === 0 ? tide + 30 : tide
    return {
      api: {
        '': [20 * tide, 90, 40 * tide, 25],
        '=user:ann': [ann, 0, 2 * ann, 0],
        '=user:loud': [40, 80, 80, 0],
        ...(minute % 5 === 0 && { '=user:rare': [3, 1, 6, 0] as const }),
      },
    }
  })
  service = await testService({
    store: { redis: { url: redis.url } },
    limiters: {
      api: {
        limits: [
          { kind: 'slidingWindow', limit: 250, window: '1m', name: 'minute' },
          { kind: 'slidingWindow', limit: 3000, window: '10m', name: 'tenMinutes' },
          { kind: 'slidingWindow', limit: 20_000, window: '1h', name: 'hourly', shadow: true },
          { kind: 'concurrency', limit: 9, ttl: '1m', name: 'slots' },
        ],
        // Tests shouldn't depend on the machine's load.
        timeoutMs: 30_000,
      },
    },
  })
})
afterAll(async () => {
  await service?.[Symbol.asyncDispose]()
  await redis?.[Symbol.asyncDispose]()
})

function open(at: string, options: WindowOptions = {}): Promise<TestWindow> {
  return openWindow(service.page, { at, ...options })
}

const choose = ({ page }: TestWindow, range: string) => page.getByRole('button', { name: range }).click()
const chart = ({ page }: TestWindow, title: string) => page.getByRole('img', { name: title })

describe('the history of a limiter', () => {
  it('an hour is shown by minute and a week by hour, with the busiest keys', async () => {
    await using window = await open('/limiters/api')
    const { page } = window
    await chart(window, 'Requests per second').waitFor()
    await choose(window, '1 hour')
    await chart(window, 'Requests per minute').waitFor()
    await chart(window, 'Units per minute').waitFor()
    expect(await chart(window, 'Requests per second').count()).toBe(0)
    const rows = page.getByRole('table', { name: 'Busiest keys in this range' }).locator('tbody tr')
    const keys = await rows.locator('th').allInnerTexts()
    expect(keys.toSorted()).toEqual(['user:ann', 'user:loud', 'user:rare'])
    await choose(window, '1 week')
    await chart(window, 'Requests per hour').waitFor()
    const figure = page.locator('figure', { hasText: 'Requests per hour' })
    expect(await figure.getAttribute('data-seconds')).toBe('168')
    const { body } = await service.get('/v1/admin/limiters/api/history?range=7d')
    expect(body.allowed).toContain(null)
    await rows.getByRole('link', { name: 'user:loud' }).click()
    await page.getByRole('heading', { name: 'History' }).waitFor()
  })
})

describe('the history of a key', () => {
  it('shows its requests and its share of each limit that counts units', async () => {
    await using window = await open('/limiters/api/keys/user%3Aann')
    await chart(window, 'Requests per minute').waitFor()
    const shares = chart(window, 'Share of each limit used')
    await shares.waitFor()
    const label = await shares.getAttribute('aria-label')
    expect(label).toMatch(/minute \d+%, tenMinutes (\d+%|–)$/)
    await choose(window, '1 week')
    await chart(window, 'Requests per hour').waitFor()
    await expect.poll(() => shares.getAttribute('aria-label')).toMatch(/minute .*, tenMinutes .*, hourly /)
  })

  it('explains gaps, and the key can be watched', async () => {
    await using window = await open('/limiters/api/keys/user%3Arare')
    const { page } = window
    await page.getByText('neither watched nor among the busiest').waitFor()
    await page.getByRole('button', { name: 'Watch', exact: true }).click()
    await page.getByRole('button', { name: 'Stop watching' }).waitFor()
    await page
      .getByRole('table', { name: /hanges/ })
      .getByText('watch', { exact: true })
      .waitFor()
    await page.getByRole('button', { name: 'Stop watching' }).click()
    await page.getByRole('button', { name: 'Watch', exact: true }).waitFor()
  })
})

describe.each([
  ['a limiter', '/limiters/api', 'Requests per minute'],
  ['a key', '/limiters/api/keys/user%3Aann', 'Share of each limit used'],
])('the history of %s', (name, at, title) => {
  it.each([
    ['light', 1280],
    ['dark', 1280],
    ['light', 390],
    ['dark', 390],
  ] as const)('passes axe in %s, and fits into %i px', async (theme, width) => {
    await using window = await open(at, { theme, size: { width, height: 844 } })
    await choose(window, '1 hour')
    await chart(window, title).waitFor()
    expect(await violationsIn(window)).toEqual([])
    await expect.poll(() => window.page.evaluate('document.documentElement.scrollWidth')).toBe(width)
    if (PICTURES === undefined) return
    for (const range of ['1 hour', '1 week']) {
      await choose(window, range)
      await window.page.waitForTimeout(500)
      const path = `${PICTURES}/${name.slice(2)}-${range.replace(' ', '-')}-${theme}-${width}.png`
      await window.page.screenshot({ path, fullPage: true })
    }
  })
})

describe('the share of a limit', () => {
  const limit = (kind: string, most: number, windowMs: number) => ({
    limit: most,
    windowMs,
    declared: { kind },
  })
  const series = { units: [10, 20, 30, null, 50, 60, 70], stepSeconds: 60 }

  it('an average is shown if windows are shorter than a step', () => {
    expect(sharesOf(series, limit('slidingWindow', 10, 10_000))!.slice(0, 4)).toEqual([
      1 / 6,
      2 / 6,
      0.5,
      null,
    ])
    expect(sharesOf(series, limit('tokenBucket', 100, 60_000))!.at(-1)).toBe(0.7)
  })

  it('sums up the window, and is unknown if a part of it is', () => {
    expect(sharesOf(series, limit('slidingWindow', 100, 120_000))).toEqual([
      null,
      0.3,
      0.5,
      null,
      null,
      1.1,
      1.3,
    ])
  })

  it('kinds that count no units have no share, nor have windows longer than the series', () => {
    expect(sharesOf(series, limit('concurrency', 10, 60_000))).toBeUndefined()
    expect(sharesOf(series, limit('slidingWindow', 10, 7 * 60_000))).toBeUndefined()
  })
})
