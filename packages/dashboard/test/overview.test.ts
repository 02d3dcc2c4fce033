// tier: system
import { expect, it } from 'vitest'
import type { Config } from '../../server/src/config/schema.ts'
import { withRedis } from '../../server/test/support/redis.ts'
import { testService } from '../../server/test/support/service.ts'
import { openWindow } from './support/browser.ts'
import { LIMITERS } from './support/limiters.ts'
import { ask, askOn } from './support/load.ts'

function keys(count: number): string[] {
  return Array.from({ length: count }, (_, i) => `user:${i}`)
}

it('the dashboard only sends requests to the service', async () => {
  await using service = await testService({ limiters: LIMITERS })
  await using window = await openWindow(service.page)
  await window.page.getByRole('link', { name: 'api' }).waitFor()
  for (const place of ['/limiters/api', '/simulator', '/configuration', '/audit']) {
    await window.go(place)
    await window.page.getByRole('heading', { level: 1 }).waitFor()
  }
  expect([...window.origins]).toEqual([service.httpUrl])
})

it('charts follow the traffic of two instances on one Redis', async () => {
  await using redis = await withRedis()
  const config: Config = { limiters: LIMITERS, store: { redis: { url: redis.url } } }
  await using service = await testService(config)
  await using other = await testService(config)
  await using window = await openWindow(service.page)
  const { page } = window
  const chart = page.locator('figure', { hasText: 'Requests per second' })
  const painted = () => page.evaluate<string>("document.querySelector('figure canvas').toDataURL()")
  await chart.locator('canvas').waitFor()
  const last = async () => Number(await chart.getAttribute('data-last'))
  const [picture, second] = [await painted(), await last()]
  let asked = 0
  await using _ = askOn(async () => {
    const fresh = keys(10).map((key) => `${key}:${asked++}`)
    await Promise.all([ask(service, 'api', fresh), ask(other, 'api', fresh)])
  })
  await expect.poll(last).toBeGreaterThan(second + 2)
  expect(await painted()).not.toBe(picture)
  await expect.poll(() => chart.innerText()).toMatch(/Allowed\s+[1-9]/)
  await expect
    .poll(() => page.locator('figure', { hasText: 'Store latency' }).innerText())
    .toMatch(/p99\s+[\d.]+ (ms|µs)/)
  const instances = page.getByRole('table', { name: 'Instances' }).locator('tbody tr')
  await expect.poll(() => instances.count()).toBe(2)
  // A server that responds late is missing for a second.
  await expect
    .poll(() => page.getByRole('table', { name: 'Store servers' }).innerText())
    .toContain(new URL(redis.url).host)
})

it('the seconds of the overview add up to the decisions of the service', async () => {
  await using service = await testService({ limiters: LIMITERS })
  await using window = await openWindow(service.page, { at: '/limiters/api' })
  const { page } = window
  await page.locator('figure').waitFor()
  // The page receives most of these seconds one by one.
  let rounds = 0
  {
    await using _ = askOn(async () => {
      if (rounds++ < 62) await ask(service, 'api', new Array(10).fill(`user:${rounds % 5}`))
    })
    await expect.poll(() => rounds).toBeGreaterThan(62)
  }
  await page.getByText('120 of 620 requests').waitFor()
})

it('the overview stays smooth with more than 100 limiters', async () => {
  const names = Array.from({ length: 120 }, (_, i) => `limiter-${`${i}`.padStart(3, '0')}`)
  const limiters = Object.fromEntries(names.map((name) => [name, LIMITERS.api!]))
  await using service = await testService({ limiters })
  await using window = await openWindow(service.page)
  const { page } = window
  const table = page.getByRole('table', { name: 'Limiters', exact: true })
  await table.getByRole('link').first().waitFor()
  await window.watchLongTasks()
  await using _ = askOn(async () => {
    await Promise.all(names.slice(0, 100).map((name, i) => ask(service, name, keys(1 + (i % 10)))))
  }, 200)
  await page.getByText('120 in total').waitFor()
  const shown = () => table.locator('tbody th').allInnerTexts()
  // The table is sorted by denials, until a click sorts it by name.
  await table.getByRole('button', { name: 'Limiter', exact: true }).click()
  const are = (expected: readonly string[]) => expect.poll(shown).toEqual(expected)
  await are(names.slice(0, 25))
  for (let turn = 1; turn <= 4; turn++) {
    await page.getByRole('button', { name: 'Next' }).click()
    await are(names.slice(25 * turn, 25 * (turn + 1)))
  }
  await page.getByRole('searchbox', { name: 'Filter by name' }).fill('limiter-07')
  await are(names.slice(70, 80))
  expect(await window.longTaskMs()).toBeLessThan(1000)
})

it('rows keep their place while the pointer is on the table', async () => {
  await using service = await testService({ limiters: LIMITERS })
  await using window = await openWindow(service.page)
  const { page } = window
  const table = page.getByRole('table', { name: 'Limiters', exact: true })
  await table.getByRole('link').first().waitFor()
  // The chart above the table would move it away from the pointer.
  await page.locator('figure canvas').waitFor()
  await table.getByRole('button', { name: 'Requests' }).click()
  const first = () => table.locator('tbody th').first().innerText()
  const before = await first()
  await table.locator('tbody tr').first().hover()
  await using _ = askOn(async () => {
    await ask(service, 'reports', keys(20))
  })
  const row = table.getByRole('row', { name: /reports/ })
  await expect.poll(() => row.innerText()).toMatch(/reports\s+[1-9]/)
  expect(await first()).toBe(before)
  await page.mouse.move(1, 1)
  await expect.poll(first).toContain('reports')
})
