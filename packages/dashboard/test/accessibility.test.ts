// tier: system
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type TestService, testService } from '../../server/test/support/service.ts'
import { violationsIn } from './support/axe.ts'
import { openWindow } from './support/browser.ts'
import { LIMITERS } from './support/limiters.ts'
import { ask } from './support/load.ts'

const PHONE = { width: 360, height: 740 }

/** A page, and text that appears once it has loaded. */
const PLACES: readonly (readonly [place: string, shows: RegExp])[] = [
  ['/', /in total/],
  ['/limiters/api', /of 520 requests/],
  ['/limiters/login', /of 9 requests/],
  ['/limiters/api/keys/user%3A1', /user:1/],
  ['/find/user%3A1', /hourly/],
  ['/simulator', /./],
  ['/configuration', /Active/],
  ['/audit', /Changes|reset/],
]

let service: TestService
beforeAll(async () => {
  service = await testService({ limiters: LIMITERS })
  const keys = Array.from({ length: 520 }, (_, i) => `user:${i % 3 === 0 ? 1 : i % 40}`)
  await ask(service, 'api', keys)
  await ask(service, 'login', new Array(9).fill({ user: 'ann', address: '203.0.113.7' }))
  await service.post('/v1/admin/reset', { limiter: 'api', key: 'user:39' })
})
afterAll(async () => {
  await service[Symbol.asyncDispose]()
})

it.each(PLACES)('%s passes axe in light and dark, and fits on a phone', async (at, shows) => {
  await using window = await openWindow(service.page, { at })
  const { page } = window
  await page.getByRole('main').getByText(shows).first().waitFor()
  expect(await violationsIn(window)).toEqual([])
  await page.emulateMedia({ colorScheme: 'dark' })
  expect(await violationsIn(window)).toEqual([])
  await page.setViewportSize(PHONE)
  // Charts are redrawn after a resize.
  await expect.poll(() => page.evaluate('document.documentElement.scrollWidth')).toBe(PHONE.width)
})

it.each(['light', 'dark'] as const)('a dialog passes axe in %s', async (theme) => {
  await using window = await openWindow(service.page, { at: '/limiters/api', theme })
  await window.page.getByRole('button', { name: 'Make shadow' }).click()
  await window.page.getByRole('dialog').waitFor()
  expect(await violationsIn(window)).toEqual([])
})
