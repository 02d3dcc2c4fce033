// tier: system
import { once } from 'node:events'
import { createWriteStream } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Report } from '../../replay/src/report/report.ts'
import {
  accessLogTime,
  combinedLine,
  commonLine,
  generateEntries,
  logOf,
  randomSequence,
} from '../../replay/test/support/logs.ts'
import { slidegateHere, temporaryFolder } from '../../server/test/support/cli.ts'
import { type TestService, testService } from '../../server/test/support/service.ts'
import { violationsIn } from './support/axe.ts'
import { openWindow, type TestWindow, type WindowOptions } from './support/browser.ts'
import { LIMITERS } from './support/limiters.ts'
import { ask } from './support/load.ts'

const EVIL = '<img/src=x/onerror=window.__hacked=1>'

const folder = temporaryFolder()
let service: TestService
beforeAll(async () => {
  const capture = { file: join(folder.path, 'captured.jsonl') }
  service = await testService({ limiters: LIMITERS, capture })
})
afterAll(async () => {
  await service[Symbol.asyncDispose]()
  folder.remove()
})

function simulator(options: WindowOptions = {}): Promise<TestWindow> {
  return openWindow(service.page, { ...options, at: '/simulator' })
}

async function load({ page }: TestWindow, file: string): Promise<void> {
  await page.getByLabel(/access log or JSON lines/).setInputFiles(file)
}

function number(text: string | undefined): number {
  return Number(/^[\d,]+/.exec(text ?? '')?.[0].replaceAll(',', ''))
}

interface Row {
  readonly admitted: number
  readonly denied: number
  readonly fullest: number
}

/** Drops a log as soon as the page is in the document, before effects run. */
function dropAtOnce(text: string): void {
  const dataTransfer = new DataTransfer()
  dataTransfer.items.add(new File([text], 'dropped.log'))
  const observer = new MutationObserver(() => {
    const panel = document.querySelector('section[aria-label="Log"]')
    if (panel === null) return
    observer.disconnect()
    panel.dispatchEvent(new DragEvent('drop', { dataTransfer, bubbles: true }))
  })
  observer.observe(document.body, { childList: true, subtree: true })
}

/** The comparison, once it shows these numbers. */
async function compared({ page }: TestWindow, limit: string, window: string): Promise<Record<string, Row>> {
  await page.getByRole('heading', { name: `${limit} per ${window}, by kind` }).waitFor({ timeout: 120_000 })
  await page.getByRole('progressbar', { name: 'Simulating' }).waitFor({ state: 'detached', timeout: 120_000 })
  const rows = await page.getByRole('table', { name: 'Comparison of kinds' }).locator('tbody tr').all()
  const told = rows.map(async (row) => {
    const [kind = '', admitted, denied, , fullest] = await row.locator('th, td').allInnerTexts()
    return [
      kind,
      { admitted: number(admitted), denied: number(denied), fullest: number(fullest?.trim()) },
    ] as const
  })
  return Object.fromEntries(await Promise.all(told))
}

async function replayed(file: string, limit: string, compare: string): Promise<Report> {
  const { stdout } = await slidegateHere(['replay', file, '--json', '--limit', limit, '--compare', compare])
  return JSON.parse(stdout) as Report
}

function rowOf({ admitted, denied, limits }: Pick<Report, 'admitted' | 'denied' | 'limits'>): Row {
  return { admitted, denied, fullest: limits[0]!.fullestWindow }
}

const ENTRIES = generateEntries(20_000)
const LOG = logOf([...ENTRIES, { timeMs: ENTRIES.at(-1)!.timeMs, key: EVIL }], combinedLine)

describe('the simulator', () => {
  it('shows the results of slidegate replay, without sending anything', async () => {
    const file = folder.write('access.log.gz', gzipSync(LOG))
    await using window = await simulator()
    const { page } = window
    const sent: string[] = []
    page.on('request', (request) => request.method() === 'GET' || sent.push(request.url()))
    await load(window, file)
    await page.getByText('20,001 requests from 21 callers').waitFor()
    for (const [limit, text] of [
      ['25', '1m'],
      ['3', '7s'],
      ['500', '2h'],
    ] as const) {
      await page.getByLabel('Requests', { exact: true }).fill(limit)
      await page.getByLabel('Window', { exact: true }).fill(text)
      const report = await replayed(file, `${limit}/${text}`, 'fixed')
      const buckets = await replayed(file, `${limit}/${text}`, 'bucket')
      expect(await compared(window, limit, text)).toEqual({
        'Sliding window': rowOf(report),
        'Fixed window': rowOf(report.compare!),
        'Token bucket': rowOf(buckets.compare!),
      })
      const most = page.getByRole('table', { name: 'Sliding window: most denials' }).locator('tbody tr')
      expect(await most.locator('th').allInnerTexts()).toEqual(report.topDenied.map(({ key }) => key))
    }
    expect(sent).toEqual([])
    expect(Array.from(window.origins)).toEqual([service.httpUrl])
  })

  it('shows 200% for a burst at the boundary of fixed windows', async () => {
    await using window = await simulator()
    const { page } = window
    await page.getByRole('button', { name: 'Load the sample' }).click()
    await compared(window, '100', '1m')
    const row = (kind: string) => page.getByRole('row', { name: kind }).first().innerText()
    expect(await row('Sliding window')).toMatch(/100\s+100%/)
    expect(await row('Fixed window')).toMatch(/200\s+200%: over\s+2026-01-05 09:10:00 UTC, 203\.0\.113\.7/)
    await page.getByRole('status').filter({ hasText: 'fixed window denies 3,997 (8.3%)' }).waitFor()
  })

  it('works with the keyboard alone', async () => {
    await using window = await simulator()
    const { page } = window
    const press = async (...keys: string[]) => {
      for (const key of keys) await page.keyboard.press(key)
    }
    const reach = async (name: string) => {
      const focused = () =>
        page.evaluate<string>(
          'document.activeElement.ariaLabel ?? document.activeElement.labels?.[0]?.innerText ?? document.activeElement.innerText',
        )
      for (let i = 0; i < 60; i++) {
        await press('Tab')
        if ((await focused())?.trim() === name) return
      }
      throw new Error(`${name} is not reached`)
    }
    await reach('Load the sample')
    await press('Enter')
    await compared(window, '100', '1m')
    await reach('Requests, slider')
    await press('ArrowRight', 'ArrowRight')
    await compared(window, '120', '1m')
    await reach('Window')
    await press('Control+A')
    await page.keyboard.type('30s')
    await compared(window, '120', '30s')
    await reach('Window, slider')
    await press('ArrowLeft')
    await compared(window, '120', '15s')
    await reach('Sliding counter')
    await press('Space')
    await page.getByRole('row', { name: 'Sliding counter' }).waitFor()
    const fitting = page.getByRole('button', { name: /^Try .* of callers$/ }).first()
    const [, limit = ''] = /^Try (.*)$/.exec(await fitting.innerText())!
    await reach(`Try ${limit}, for 90% of callers`)
    await press('Enter')
    await compared(window, limit, '15s')
  })

  it('explains an invalid number, and keeps the last results', async () => {
    await using window = await simulator()
    const { page } = window
    await page.getByRole('button', { name: 'Load the sample' }).click()
    await compared(window, '100', '1m')
    await page.getByLabel('Requests', { exact: true }).fill('0')
    await page.getByText('Enter a whole number from 1').waitFor()
    await page.getByLabel('Window', { exact: true }).fill('soon')
    await page.getByText('Enter a duration from 10ms').waitFor()
    await compared(window, '100', '1m')
    // Too large for a token bucket. The other kinds are still shown.
    await page.getByLabel('Requests', { exact: true }).fill('1099511627775')
    await page.getByLabel('Window', { exact: true }).fill('365d')
    await page.getByText(/^Token bucket: the capacity is 1099511627775/).waitFor()
    expect(Object.keys(await compared(window, '1,099,511,627,775', '365d'))).toEqual([
      'Sliding window',
      'Fixed window',
    ])
  })

  it('accepts a file dropped the moment the page appears', async () => {
    await using window = await openWindow(service.page)
    const { page } = window
    await page.evaluate(dropAtOnce, logOf(generateEntries(100), commonLine))
    await window.go('/simulator')
    await page.getByText('dropped.log: 100 requests').waitFor()
  })
})

describe('a file', () => {
  let window: TestWindow
  beforeAll(async () => {
    window = await simulator()
  })
  afterAll(() => window[Symbol.asyncDispose]())

  const broken = gzipSync(LOG)
  it.each<[string, string | Buffer, RegExp]>([
    ['empty', '', /the-file is empty/],
    ['a broken gzip', broken.subarray(0, broken.length / 2), /Can’t read the-file: the gzip file is damaged/],
    ['of two gzips', Buffer.concat([broken, broken]), /has several members: unpack it/],
    [
      'binary',
      Buffer.from(Array.from({ length: 4000 }, (_, i) => (i * 7) % 251)),
      /None of the \d+ lines in the-file is a request/,
    ],
    ['without a line that can be read', 'one\ntwo\n', /None of the 2 lines/],
  ])('without requests (%s) shows why', async (_, content, message) => {
    await load(window, folder.write('the-file', content))
    await window.page.getByRole('alert').filter({ hasText: message }).waitFor()
    expect(await window.page.getByRole('table', { name: 'Comparison of kinds' }).count()).toBe(0)
    // The page still accepts a valid file.
    await load(window, folder.write('good.log', logOf(generateEntries(50), commonLine)))
    await compared(window, '100', '1m')
  })

  it('with hostile lines and keys shows them as text', async () => {
    const evil = '<img src=x onerror=window.__hacked=1>'
    const times = new Array(200).fill(Date.UTC(2024, 0, 1))
    const lines = times.map((time) => JSON.stringify({ time, ip: evil, [evil]: evil }))
    const { page } = window
    await load(
      window,
      folder.write(`${evil.replaceAll(/[ /]/g, '_')}.log`, [evil, `\u202e${evil}`, ...lines].join('\n')),
    )
    await compared(window, '100', '1m')
    await page
      .getByRole('row', { name: `${evil} 100 50%` })
      .first()
      .waitFor()
    await page.getByText('2 of 202 lines were skipped').click()
    await page
      .getByRole('code')
      .filter({ hasText: `\\u202e${evil}` })
      .waitFor()
    expect(await page.locator('main img').count()).toBe(0)
    expect(await page.evaluate('window.__hacked')).toBeUndefined()
  })

  it('with JSON lines can count by any field', async () => {
    const line = (i: number) => JSON.stringify({ at: 1_700_000_000 + i, who: { id: `u${i % 4}` }, units: 3 })
    const { page } = window
    await load(window, folder.write('fields.jsonl', Array.from({ length: 40 }, (_, i) => line(i)).join('\n')))
    await page.getByRole('alert').filter({ hasText: 'no readable time in field "time"' }).waitFor()
    await page.getByText('Line format').click()
    const choose = async (label: string, field: string) => {
      await page.getByLabel(label).fill(field)
      await page.getByLabel(label).blur()
    }
    await choose('Time field', 'at')
    await choose('Count by', 'who.id')
    await page.getByText('40 requests from 4 callers').waitFor()
    await choose('Cost field', 'units')
    // The first results may not include costs yet.
    await expect
      .poll(() => compared(window, '100', '1m'))
      .toMatchObject({ 'Sliding window': { fullest: 30 } })
  })
})

it('captured requests are simulated as they were decided', async () => {
  const keys = Array.from({ length: 300 }, (_, i) => `user:${i % 2}`)
  await ask(service, 'api', keys)
  await using window = await simulator()
  const { page } = window
  await page.getByLabel('Captured requests for').selectOption('api')
  await page.getByRole('button', { name: 'Load', exact: true }).click()
  await page.getByText('captured requests for api: 300 requests from 2 callers').waitFor()
  await page.getByLabel('Window', { exact: true }).fill('1h')
  // The active limit is 100 per hour and key.
  expect(await compared(window, '100', '1h')).toMatchObject({
    'Sliding window': { admitted: 200, denied: 100, fullest: 100 },
  })
})

it('a service without captures responds with an error', async () => {
  await using other = await testService({ limiters: LIMITERS })
  await using window = await openWindow(other.page, { at: '/simulator' })
  window.expect(/404/)
  await window.page.getByRole('button', { name: 'Load', exact: true }).click()
  await window.page.getByText('The service responded: no requests are captured').waitFor()
})

/** Records which progress bars appeared. */
const WATCH_PROGRESS = `window.progressOf = new Set()
new MutationObserver(() => {
  for (const { ariaLabel } of document.querySelectorAll('progress')) window.progressOf.add(ariaLabel)
}).observe(document.body, { childList: true, subtree: true })`

describe('a log of a million lines', () => {
  const LINES = 1_000_000
  const file = join(folder.path, 'million.log')
  beforeAll(async () => {
    const out = createWriteStream(file)
    const random = randomSequence(1)
    for (let second = 0; second < LINES / 20; second++) {
      const time = accessLogTime(Date.UTC(2026, 0, 5) + 1000 * second)
      const lines = Array.from({ length: 20 }, (_, i) => {
        const caller = Math.floor(random() ** 3 * 50_000)
        return `10.0.${caller >> 8}.${caller & 255} - - [${time}] "GET /a?b=${i} HTTP/1.1" 200 99\n`
      })
      if (!out.write(lines.join(''))) await once(out, 'drain')
    }
    out.end()
    await once(out, 'finish')
  })

  it('keeps the page responsive while a slider moves', async () => {
    await using window = await simulator()
    const { page } = window
    await window.watchLongTasks()
    await page.evaluate(WATCH_PROGRESS)
    await load(window, file)
    await page.getByText('1,000,000 requests from').waitFor({ timeout: 120_000 })
    // The first run is still running, as are those that follow.
    const slider = page.getByLabel('Requests, slider')
    for (let i = 0; i < 30; i++) await slider.press('ArrowLeft')
    const movedMs = performance.now()
    const rows = await compared(window, '70', '1m')
    const simulatedMs = performance.now() - movedMs
    for (const { admitted, denied } of Object.values(rows)) expect(admitted + denied).toBe(LINES)
    expect(rows['Sliding window']!.fullest).toBeLessThanOrEqual(70)
    expect(await page.evaluate('[...window.progressOf].sort()')).toEqual(['Reading the log', 'Simulating'])
    // Less than a tenth on an idle machine. Reading or simulating on the page's thread would take seconds.
    expect(await window.longTaskMs()).toBeLessThan(1000)
    // Canceled runs take no time: one more run takes about as long as all of them.
    const oneMs = performance.now()
    await page.getByLabel('Requests', { exact: true }).fill('71')
    await compared(window, '71', '1m')
    expect(simulatedMs).toBeLessThan(10 * (performance.now() - oneMs))
  })
})

describe('the simulator with results', () => {
  it.each(['light', 'dark'] as const)('passes axe in %s', async (theme) => {
    await using window = await simulator({ theme })
    const { page } = window
    const log = logOf(generateEntries(2000), commonLine)
    await load(window, folder.write('some.log', `garbage\n${log}`))
    await compared(window, '100', '1m')
    await page.getByText('Line format').click()
    await page.getByText('lines were skipped').click()
    await page.getByText('Show as a table').first().click()
    await page.getByLabel('Window', { exact: true }).fill('x')
    expect(await violationsIn(window)).toEqual([])
  })

  it('fits on a phone', async () => {
    await using window = await simulator({ size: { width: 390, height: 844 } })
    const { page } = window
    await page.getByRole('button', { name: 'Load the sample' }).click()
    await page.getByRole('table', { name: 'Comparison of kinds' }).waitFor()
    await page.getByText('Line format').click()
    await expect.poll(() => page.evaluate('document.documentElement.scrollWidth')).toBe(390)
  })
})
