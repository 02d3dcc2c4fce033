// tier: system
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { Config, LimiterConfig } from '../../server/src/config/schema.ts'
import { temporaryFolder } from '../../server/test/support/cli.ts'
import { testService } from '../../server/test/support/service.ts'
import { startProcess } from '../../server/test/support/service-process.ts'
import { anchors, ROOT } from '../../slidegate/test/docs/markdown.ts'
import { freePort } from '../../slidegate/test/support/ports.ts'
import { startRedis } from '../../slidegate/test/support/redis-server.ts'
import { violationsIn } from './support/axe.ts'
import { openWindow, type TestWindow } from './support/browser.ts'
import { AUTH, LIMITERS, TOKENS } from './support/limiters.ts'
import { askOn } from './support/load.ts'

const PHONE = { width: 390, height: 844 }

const limits: LimiterConfig['limits'] = [{ kind: 'slidingWindow', limit: 100, window: '1h' }]
const limiters: Config['limiters'] = {
  login: { limits, onStoreError: 'deny', timeoutMs: 200 },
  search: { limits, onStoreError: 'allow', timeoutMs: 200 },
  api: { limits, onStoreError: 'local', instances: 2, timeoutMs: 200 },
  pay: { limits, onStoreError: 'throw', timeoutMs: 200 },
}

async function isAccessible(window: TestWindow): Promise<void> {
  const { page } = window
  const size = page.viewportSize()!
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme })
    expect(await violationsIn(window)).toEqual([])
  }
  await page.setViewportSize(PHONE)
  await expect.poll(() => page.evaluate('document.documentElement.scrollWidth')).toBe(PHONE.width)
  await page.setViewportSize(size)
  await page.emulateMedia({ colorScheme: 'light' })
}

it('an outage of Redis is announced with its consequences for each limiter, until it is over', async () => {
  const redis = await startRedis()
  onTestFinished(() => redis.stop())
  await using service = await testService({ limiters, auth: AUTH, store: { redis: { url: redis.url } } })
  const key = 'ann'
  const authorization = `Bearer ${TOKENS.admin}`
  await using window = await openWindow(service.httpUrl, { token: TOKENS.admin })
  const { page } = window
  // The limiters' lists of overrides and other reads fail meanwhile.
  window.expect(/status of 503/)
  const banner = page.getByRole('alert').filter({ hasText: 'The store is down' })
  await page.getByRole('link', { name: 'login' }).waitFor()
  expect(await banner.count()).toBe(0)
  await redis.kill()
  await using _ = askOn(async () => {
    for (const limiter of Object.keys(limiters))
      await service.post('/v1/consume', { limiter, key }, { authorization })
  })
  const consequences = () => banner.getByRole('listitem').allInnerTexts()
  await expect
    .poll(consequences, { timeout: 30_000 })
    .toEqual([
      'api enforces half of each limit in every process',
      'login denies everyone',
      'pay answers every request with an error (503)',
      'search lets everyone through, uncounted',
    ])
  await banner.getByText(/^The store is down since \d\d:\d\d:\d\d\. Until it responds:$/).waitFor()
  await banner.getByText('this page only covers the instance that serves the page').waitFor()
  expect(await page.getByLabel('In the last second').innerText()).toMatch(/Store\s+down\b/)
  await isAccessible(window)
  await banner.getByRole('link', { name: 'What to do' }).click()
  await page.getByRole('heading', { level: 1, name: 'SlidegateRedisDown' }).waitFor()
  await page.getByText('promote a replica').waitFor()
  await isAccessible(window)
  await window.go('/limiters/login')
  await expect.poll(consequences).toEqual(['login denies everyone'])
  await redis.start()
  await banner.waitFor({ state: 'detached' })
  await page
    .getByText(
      /^The store is responding again\. It was down for [\w ]+, from \d\d:\d\d:\d\d to \d\d:\d\d:\d\d\.$/,
    )
    .waitFor()
})

it('a killed instance stays visible for a while, with the time and its last rate', async () => {
  const redis = await startRedis()
  onTestFinished(() => redis.stop())
  await using service = await testService({ limiters, store: { redis: { url: redis.url } } })
  const folder = temporaryFolder()
  onTestFinished(folder.remove)
  const file = folder.write('slidegate.json', JSON.stringify({ limiters, auth: { anonymous: 'check' } }))
  await using other = await startProcess(['--config', file], { REDIS_URL: redis.url })
  await using window = await openWindow(service.page)
  const { page } = window
  const row = page
    .getByRole('table', { name: 'Instances' })
    .getByRole('row')
    .filter({ hasText: `/${other.pid}` })
  const body = JSON.stringify({ limiter: 'search', key: 'ann' })
  const headers = { 'content-type': 'application/json' }
  {
    await using _ = askOn(async () => {
      await fetch(`${other.url}/v1/consume`, { method: 'POST', headers, body }).catch(() => {})
    })
    await expect.poll(() => row.innerText(), { timeout: 30_000 }).toMatch(/\s[1-9][\d.]*\/s/)
    // A heartbeat each second carries the rate.
    await page.waitForTimeout(1500)
    other.kill('SIGKILL')
    await other.ended
  }
  await expect
    .poll(() => row.innerText(), { timeout: 30_000 })
    .toMatch(/gone since \d\d:\d\d:\d\d, [1-9][\d.]*\/s before that/)
  await row.getByRole('link', { name: 'What to do' }).waitFor()
  await page.getByText(`An instance has disappeared without shutting down: `).waitFor()
  expect(await page.getByLabel('In the last second').innerText()).toMatch(/Instances\s+1\b/)
  await isAccessible(window)
})

it('a lost connection is a band with the time of the last answer, and marks everything as old', async () => {
  const folder = temporaryFolder()
  onTestFinished(folder.remove)
  const config = { limiters: LIMITERS, auth: { anonymous: 'read' } }
  const file = folder.write('slidegate.json', JSON.stringify(config))
  const host = `127.0.0.1:${await freePort()}`
  await using first = await startProcess(['--config', file, '--http', host])
  await using window = await openWindow(first.url)
  window.expect(/net::ERR_/)
  const { page } = window
  await page.getByText('Live', { exact: true }).waitFor()
  const band = page.getByRole('complementary', { name: 'Connection' })
  const color = () => page.evaluate<string>("getComputedStyle(document.querySelector('.stats dd')).color")
  const live = await color()
  expect(await band.count()).toBe(0)
  first.kill('SIGKILL')
  await first.ended
  await band.getByText(/No connection to the service since \d\d:\d\d:\d\d/).waitFor()
  expect(await color()).not.toBe(live)
  await isAccessible(window)
  await using _second = await startProcess(['--config', file, '--http', host])
  await band.waitFor({ state: 'detached' })
  expect(await color()).toBe(live)
})

it('the overview warns while the configuration file is invalid, or waits for a restart', async () => {
  const folder = temporaryFolder()
  onTestFinished(folder.remove)
  const config = { limiters: LIMITERS, auth: { anonymous: 'read' }, store: { memory: {} } }
  const file = folder.write('slidegate.json', JSON.stringify(config))
  await using service = await startProcess(['--config', file])
  await using window = await openWindow(service.url)
  const { page } = window
  await page.getByRole('link', { name: 'api' }).waitFor()
  folder.write('slidegate.json', '{ "limiters": 7 }')
  await page.getByText(/configuration file of .* is invalid/).waitFor()
  await page.getByRole('link', { name: 'What to do' }).waitFor()
  await isAccessible(window)
  folder.write('slidegate.json', JSON.stringify({ ...config, store: { memory: { maxKeys: 5000 } } }))
  await page.getByText(/take effect at the next start/).waitFor()
  expect(await page.getByText(/is invalid/).count()).toBe(0)
})

it('an overview without requests shows a command that sends one', async () => {
  await using service = await testService({ limiters: { login: LIMITERS.login! }, auth: AUTH })
  await using window = await openWindow(service.httpUrl, { token: TOKENS.read })
  const { page } = window
  const command = await page.locator('code', { hasText: 'curl' }).innerText()
  expect(command).toBe(
    `curl -i ${service.httpUrl}/v1/consume -H 'content-type: application/json' -H "Authorization: Bearer $SLIDEGATE_TOKEN" -d '{"limiter":"login","key":{"user":"user:42","address":"address:42"}}'`,
  )
  const body = { limiter: 'login', key: { user: 'user:42', address: 'address:42' } }
  await service.post('/v1/consume', body, { authorization: `Bearer ${TOKENS.check}` })
  await page.locator('code', { hasText: 'curl' }).waitFor({ state: 'detached' })
})

describe('the runbook', () => {
  const alerts = readFileSync(join(ROOT, 'docs/alerts.md'), 'utf8')
  const headings = Array.from(alerts.matchAll(/^### (\w+)$/gm), ([, heading]) => heading!)

  it('the runbook has every section of the documentation, with working links', async () => {
    await using service = await testService({ limiters: LIMITERS })
    await using window = await openWindow(service.page, { at: '/runbook' })
    const { page } = window
    const links = page.getByRole('region', { name: 'Alerts' }).getByRole('link')
    await links.first().waitFor()
    const names = await links.allInnerTexts()
    expect(names.filter((name) => /^Slidegate/.test(name))).toEqual(headings)
    for (const heading of headings) {
      await window.go(`/runbook/${heading}`)
      const section = page.getByRole('region', { name: heading, exact: true })
      for (const part of ['Look:', 'Do:', 'False alarm:']) await section.getByText(part).waitFor()
      expect(await section.innerText()).not.toMatch(/\]\(|\*\*/)
    }
    await isAccessible(window)
  })

  it('the runbook has a section for each warning of the page', () => {
    const source = readFileSync(join(ROOT, 'packages/dashboard/src/runbook/sections.ts'), 'utf8')
    const used = Array.from(source.matchAll(/^ {2}\| '(\w+)'/gm), ([, name]) => name!)
    expect(used.length).toBeGreaterThan(4)
    expect(headings).toEqual(expect.arrayContaining(used))
    for (const name of used) expect(anchors(alerts)).toContain(name.toLowerCase())
  })
})
