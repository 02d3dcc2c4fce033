import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { it, onTestFinished } from 'vitest'
import { randomSequence } from '../../../replay/test/support/logs.ts'
import type { Config } from '../../../server/src/config/schema.ts'
import { temporaryFolder } from '../../../server/test/support/cli.ts'
import { withRedis } from '../../../server/test/support/redis.ts'
import { startProcess } from '../../../server/test/support/service-process.ts'
import { openWindow } from '../support/browser.ts'
import { ask, askOn } from '../support/load.ts'

const SECONDS = Number(process.env.SCREENSHOT_SECONDS)
const FOLDER = process.env.SCREENSHOT_FOLDER!

/** Screenshots shouldn't show a loaded machine. */
const timeoutMs = 5000

const LIMITERS: Config['limiters'] = {
  api: {
    limits: [
      { kind: 'slidingWindow', limit: 10, window: '10s' },
      { kind: 'slidingWindow', limit: 1000, window: '1h', name: 'hourly' },
      { kind: 'slidingWindow', limit: 40, window: '1m', name: 'stricter', shadow: true },
    ],
    plans: { gold: { keys: ['org:acme'], limits: [{ kind: 'slidingWindow', limit: 100, window: '1s' }] } },
    timeoutMs,
  },
  login: {
    dimensions: {
      user: [{ kind: 'slidingWindow', limit: 5, window: '1m' }],
      address: [{ kind: 'slidingWindow', limit: 50, window: '15m' }],
    },
    timeoutMs,
  },
  search: { limits: [{ kind: 'slidingWindow', limit: 30, window: '1m' }], timeoutMs },
  uploads: { limits: [{ kind: 'tokenBucket', capacity: 20, refill: 10, interval: '10s' }], timeoutMs },
  webhooks: { limits: [{ kind: 'slidingWindow', limit: 5, window: '1s' }], timeoutMs },
  reports: { limits: [{ kind: 'concurrency', limit: 3, ttl: '30s' }], timeoutMs },
}

function address(of: number): string {
  return `203.0.113.${of % 250}`
}

const TOKEN = 'the-token-of-the-operator'

function atUrl(url: string) {
  return {
    post: async (path: string, body: unknown) => {
      const headers = { 'content-type': 'application/json', authorization: `Bearer ${TOKEN}` }
      const { status } = await fetch(url + path, { method: 'POST', headers, body: JSON.stringify(body) })
      return { status }
    },
  }
}

const PLACES = [
  ['overview', '/'],
  ['limiter', '/limiters/api'],
  ['key', '/limiters/api/keys/user%3A7'],
  ['simulator', '/simulator'],
  ['configuration', '/configuration'],
  ['audit', '/audit'],
] as const

const LOOKS = [
  ['light', { theme: 'light', size: { width: 1280, height: 800 } }],
  ['dark', { theme: 'dark', size: { width: 1280, height: 800 } }],
  ['phone', { theme: 'light', size: { width: 390, height: 844 } }],
] as const

it('takes a picture of each page', { timeout: (SECONDS + 240) * 1000 }, async () => {
  await mkdir(FOLDER, { recursive: true })
  await using redis = await withRedis()
  const folder = temporaryFolder()
  onTestFinished(folder.remove)
  const auth: Config['auth'] = { tokens: [{ name: 'operator', role: 'admin', token: TOKEN }] }
  const config: Config = { limiters: LIMITERS, store: { redis: { url: redis.url } }, auth }
  const file = folder.write('slidegate.json', JSON.stringify(config))
  await using first = await startProcess(['--config', file])
  await using second = await startProcess(['--config', file])
  const [service, other] = [atUrl(first.url), atUrl(second.url)]
  const random = randomSequence(7)
  const began = Date.now()
  await using _ = askOn(async () => {
    const second = (Date.now() - began) / 1000
    const tide = 1 + 0.5 * Math.sin(second / 20)
    const some = (most: number) => Math.floor(random() * most * tide)
    const users = Array.from({ length: some(14) }, () => `user:${Math.floor(40 * random() ** 2)}`)
    const flood = second % 120 > 60 && second % 120 < 85 ? new Array<string>(8).fill('user:7') : []
    await Promise.all([
      ask(service, 'api', [...users, ...flood]),
      ask(
        other,
        'search',
        Array.from({ length: some(6) }, () => `user:${Math.floor(60 * random())}`),
      ),
      ask(
        other,
        'uploads',
        Array.from({ length: some(2) }, () => `org:${Math.floor(4 * random())}`),
      ),
      ask(
        service,
        'webhooks',
        Array.from({ length: some(3) }, () => `shop:${Math.floor(9 * random())}`),
      ),
      ask(service, 'login', [{ user: `ann${some(6)}`, address: address(some(40)) }]),
    ])
  }, 100)
  await service.post('/v1/admin/block', { limiter: 'api', key: 'user:99', ttl: '1h' })
  await service.post('/v1/admin/unblock', { limiter: 'api', key: 'user:99' })
  await service.post('/v1/admin/reset', { limiter: 'search', key: 'user:12' })
  await service.post('/v1/admin/shadow', { limiter: 'webhooks', shadow: true })
  // Pages stay open, so that their charts fill.
  const windows = await Promise.all(
    LOOKS.map(
      async ([look, options]) => [look, await openWindow(first.url, { ...options, token: TOKEN })] as const,
    ),
  )
  await new Promise((resolve) => setTimeout(resolve, SECONDS * 1000))
  for (const [look, window] of windows) {
    await using _end = window
    for (const [name, at] of PLACES) {
      await window.go(at)
      if (name === 'simulator') await window.page.getByRole('button', { name: 'Load the sample' }).click()
      // Wait until charts have moved.
      await window.page.waitForTimeout(4500)
      await window.page.screenshot({ path: join(FOLDER, `${name}-${look}.png`) })
    }
  }
})
