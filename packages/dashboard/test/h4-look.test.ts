import { it } from 'vitest'
import { type TestService, testService } from '../../server/test/support/service.ts'
import { type TestBrowser, testBrowser } from './support/browser.ts'

const ADMIN = 'a'.repeat(40)
const BOSS = { authorization: `Bearer ${ADMIN}` }
it('looks', { timeout: 180_000 }, async () => {
  const browser: TestBrowser = await testBrowser()
  const service: TestService = await testService({
    auth: { tokens: [{ name: 'boss', role: 'admin', token: ADMIN }] },
    limiters: {
      api: {
        limits: [
          { kind: 'slidingWindow', limit: 40, window: '20s' },
          { kind: 'slidingWindow', limit: 300, window: '10m', precision: '1s', name: 'slow', shadow: true },
          { kind: 'fixedWindow', limit: 60, window: '1m', name: 'fixed' },
          { kind: 'tokenBucket', capacity: 60, refill: 2, interval: '1s', name: 'bucket' },
        ],
        ban: { after: 50, within: '1h', for: '1h' },
      },
    },
  })
  const consume = async (cost: number) =>
    void (await service.post('/v1/consume', { limiter: 'api', key: 'user:42', cost }, BOSS))
  await consume(3)
  const size = { width: 1280, height: 1000 }
  const windows = await Promise.all([
    browser.open(service.httpUrl, { token: ADMIN, at: '/limiters/api/keys/user%3A42', size }),
    browser.open(service.httpUrl, { token: ADMIN, at: '/limiters/api/keys/user%3A42', size, theme: 'dark' }),
    browser.open(service.httpUrl, {
      token: ADMIN,
      at: '/limiters/api/keys/user%3A42',
      size: { width: 390, height: 844 },
    }),
  ])
  for (let i = 0; i < 60; i++) {
    await consume(i > 45 ? 6 : 1 + ((i * 7) % 4))
    await new Promise((r) => setTimeout(r, 300 + ((i * 137) % 400)))
  }
  for (const [i, window] of windows.entries()) {
    await window.page.screenshot({ path: `/tmp/h4/key-${i}.png`, fullPage: true })
  }
  const { page } = windows[0]!
  await page.screenshot({ path: '/tmp/h4/top.png', clip: { x: 0, y: 0, width: 1280, height: 900 } })
  await windows[2]!.page.evaluate('scrollTo(0, 330)')
  await windows[2]!.page.screenshot({ path: '/tmp/h4/phone.png' })
  await page.getByRole('button', { name: 'Override…' }).click()
  await page.screenshot({ path: '/tmp/h4/key-override.png' })
  await page.getByRole('button', { name: 'Cancel' }).click()
  await page.getByRole('button', { name: 'Ban…', exact: true }).click()
  await page.screenshot({ path: '/tmp/h4/key-ban.png' })
  for (const window of windows) await window[Symbol.asyncDispose]()
  await browser[Symbol.asyncDispose]()
  await service[Symbol.asyncDispose]()
})
