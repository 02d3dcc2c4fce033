// tier: system
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { gzipSync } from 'node:zlib'
import { type Browser, chromium } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { CHROMIUM } from '../../../dashboard/test/support/browser.ts'
import { generateEntries, jsonLine, logOf } from '../../../replay/test/support/logs.ts'
import { replayJson, slidegate, slidegateHere, temporaryFolder } from '../support/cli.ts'

const folder = temporaryFolder()
afterAll(folder.remove)

const BIN = fileURLToPath(new URL('../../bin/slidegate.js', import.meta.url))
const T = Date.UTC(2026, 2, 9, 12)

interface Entry {
  readonly atMs: number
  readonly key: string
  readonly cost?: unknown
}

function log(name: string, entries: readonly Entry[]): string {
  const lines = entries.map(({ atMs, key, cost }) =>
    JSON.stringify({ time: new Date(T + atMs), ip: key, cost }),
  )
  return folder.write(name, `${lines.join('\n')}\n`)
}

/** Returns `count` requests of one key, one per millisecond. */
function burst(atMs: number, count: number, key = 'caller'): Entry[] {
  return Array.from({ length: count }, (_, i) => ({ atMs: atMs + i, key }))
}

describe('costs', () => {
  const file = log('costs.jsonl', [
    ...[3, 3, 5, 1, 1].map((cost, i) => ({ atMs: i, key: 'a', cost })),
    ...[0, -1, 1.5, '2', null, 2 ** 41].map((cost) => ({ atMs: 9, key: 'a', cost })),
  ])

  it('come from the named field', async () => {
    const report = await replayJson([file, '--limit', '8/1m', '--cost-field', 'cost'])
    expect(report).toMatchObject({
      ...{ requests: 5, admitted: 4, denied: 1, skipped: 6 },
      skippedReasons: { 'no cost in field "cost"': 6 },
      limits: [{ fullestWindow: 8 }],
    })
  })

  it('default to 1', async () => {
    const report = await replayJson([file, '--limit', '8/1m'])
    expect([report.requests, report.admitted]).toEqual([11, 8])
  })
})

describe('--compare', () => {
  it('bucket admits nearly twice the limit within a window', async () => {
    const entries = Array.from({ length: 600 }, (_, i) => ({ atMs: i * 100, key: 'a' }))
    const file = log('bucket.jsonl', entries)
    const report = await replayJson([file, '--limit', '10/1m', '--compare', 'bucket'])
    expect(report.limits[0]!.fullestWindow).toBe(10)
    expect(report.compare).toMatchObject({ kind: 'bucket', limits: [{ fullestWindow: 19 }] })
    const { stdout } = await slidegateHere(['replay', file, '--limit', '10/1m', '--compare', 'bucket'])
    expect(stdout).toContain('with token buckets: 19 admitted, 581 denied')
  })
})

describe('a chart over time', () => {
  const file = log('chart.jsonl', [...burst(0, 30), ...burst(3_600_000, 10), ...burst(2 * 3_600_000, 8)])
  const words = ['replay', file, '--limit', '10/1m']

  it('appears on request, and not in a pipe by default', async () => {
    const { stdout } = await slidegateHere([...words, '--chart'])
    expect(stdout).toContain('over time (UTC): █ admitted, ░ denied')
    expect(stdout).toMatch(/2026-03-09 12:00 {2}█{13}░{27} +10 +20\n/)
    expect(stdout).toMatch(/2026-03-09 13:00 {2}█{13} +10 +0\n/)
    expect((await slidegateHere(words)).stdout).not.toContain('over time')
  })
})

/** Runs a shell command on a terminal, and returns what it shows. */
async function onTerminal(command: string): Promise<string> {
  const child = spawn('script', ['-qec', command, '/dev/null'], { stdio: ['ignore', 'pipe', 'inherit'] })
  let seen = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    seen += text
  })
  await once(child, 'close')
  return seen
}

describe('on a terminal', () => {
  const content = logOf(generateEntries(60_000), jsonLine)
  const plain = folder.write('bar.log', content)
  const packed = folder.write('bar.log.gz', gzipSync(content))
  const command = `${process.execPath} ${BIN} replay`

  it.each([plain, packed])('a progress bar is shown without affecting the output (%s)', async (file) => {
    const output = join(folder.path, 'output.json')
    const seen = await onTerminal(`${command} ${file} --limit 10/1m --json > ${output}`)
    expect(seen).toContain(' 100%')
    expect(JSON.parse(readFileSync(output, 'utf8'))).toMatchObject({ requests: 60_000 })
  })

  it('Ctrl-C stops it', async () => {
    const long = folder.write('long.log', content)
    // A sparse file takes no space, and reading it takes long enough to press a key.
    truncateSync(long, 16 * 2 ** 30)
    const words = ['-qec', `${command} ${long} --limit 10/1m`, '/dev/null']
    const child = spawn('script', words, { stdio: ['pipe', 'pipe', 'inherit'] })
    let seen = ''
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      if (seen === '') child.stdin.write('\u0003')
      seen += text
    })
    const [code] = await once(child, 'close')
    expect(code).toBe(130)
    expect(seen).not.toContain('admitted')
  })

  it('standard input has no progress bar, and the report has a chart', async () => {
    const seen = await onTerminal(`cat ${plain} | ${command} - --limit 10/1m`)
    expect(seen).not.toMatch(/[█░] \d+%/)
    expect(seen).toContain('over time (UTC)')
  })
})

describe('--report', () => {
  const HOSTILE = [
    '<script>document.title="owned"</script>',
    '<img src=x onerror=alert(1)>',
    '"><svg onload=alert(1)>',
    "' onmouseover='alert(1)",
    '&lt;b&gt;',
    'abc\u202edef\u0007\u2028',
    '</title></style><h1>owned',
  ]
  const hostile = log('<b>&hostile.jsonl', [
    ...HOSTILE.flatMap((key, i) => burst(i * 1000, 40 - i, key)),
    ...burst(59_900, 60, 'edge'),
    ...burst(60_000, 60, 'edge'),
  ])
  const page = join(folder.path, 'hostile.html')
  const words = ['--limit', '10/1m', '--limit', 'long=1000/1h', '--compare', 'fixed']
  const replay = (file: string, report: string, more: readonly string[] = words) =>
    slidegate(['replay', file, ...more, '--report', report])

  let browser: Browser
  beforeAll(async () => {
    appendTorn(hostile)
    expect(await replay(hostile, page)).toMatchObject({ code: 0, stderr: '' })
    browser = await chromium.launch({
      executablePath: CHROMIUM,
      args: ['--no-sandbox', '--disable-gpu', '--disable-background-networking'],
    })
  })
  afterAll(() => browser?.close())

  /** Opens a report, and records its requests and errors. */
  async function opened(colorScheme: 'light' | 'dark' = 'light') {
    const view = await browser.newPage({ colorScheme })
    const heard: string[] = []
    view.on('console', (message) => heard.push(message.text()))
    view.on('pageerror', (error) => heard.push(error.message))
    view.on('request', (request) => heard.push(request.url()))
    view.on('dialog', (dialog) => heard.push(dialog.message()))
    await view.goto(pathToFileURL(page).href)
    return { view, heard }
  }

  it('shows denials by limit, caller and time, and the usage of windows', async () => {
    const { view } = await opened()
    const text = await view.locator('main').innerText()
    const report = await replayJson([hostile, ...words])
    for (const words of [
      'Replay report',
      `${report.denied}`,
      '10 per 1m',
      '1,000 per 1h',
      'fixed windows',
      '200%',
      'lines skipped',
      'not a JSON object',
    ])
      expect(text).toContain(words)
    const callers = await view
      .locator('section', { hasText: 'Most denied callers' })
      .last()
      .locator('tbody th, tbody td:first-child')
      .allInnerTexts()
    expect(callers.length).toBeGreaterThanOrEqual(HOSTILE.length)
    // The charts have the numbers of the replay.
    await view
      .locator('details')
      .first()
      .evaluate((details) => details.setAttribute('open', ''))
    const cells = await view.locator('details').first().locator('tbody tr').allInnerTexts()
    const sums = cells.map((row) =>
      row
        .split('\t')
        .slice(1)
        .map((cell) => Number(cell.replaceAll(',', ''))),
    )
    expect(sums.reduce((sum, [admitted]) => sum + admitted!, 0)).toBe(report.admitted)
    expect(sums.reduce((sum, [, denied]) => sum + denied!, 0)).toBe(report.denied)
    await view.close()
  })

  it('loads nothing, runs no scripts, and shows keys as text', async () => {
    const { view, heard } = await opened()
    expect(heard).toEqual([pathToFileURL(page).href])
    expect(await view.title()).toContain('hostile.jsonl')
    expect(await view.locator('script, img, svg[onload], [onmouseover], [style], iframe, link').count()).toBe(
      0,
    )
    const text = await view.locator('main').innerText()
    for (const key of HOSTILE.slice(0, 5)) expect(text).toContain(key)
    expect(text).toContain('abc\\u202edef\\u0007\\u2028')
    expect(readFileSync(page, 'utf8')).toMatch(
      /http-equiv="Content-Security-Policy" content="default-src &#39;none&#39;/,
    )
    await view.close()
  })

  it.each(['light', 'dark'] as const)('passes accessibility checks in %s mode', async (colorScheme) => {
    const { view } = await opened(colorScheme)
    const source = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
    // Its content security policy blocks scripts, including those of tests.
    const cdp = await view.context().newCDPSession(view)
    await cdp.send('Runtime.evaluate', { expression: source })
    await cdp.send('Runtime.evaluate', {
      expression: "document.querySelectorAll('details').forEach((d) => { d.open = true })",
    })
    const { result } = await cdp.send('Runtime.evaluate', {
      expression:
        'axe.run().then(({ violations }) => JSON.stringify(violations.map(({ id, impact, nodes }) => [id, impact, nodes.length, nodes[0].html.slice(0, 200)])))',
      awaitPromise: true,
    })
    expect(JSON.parse(result.value as string)).toEqual([])
    await view.close()
  })

  it('fits small screens', async () => {
    const view = await browser.newPage({ viewport: { width: 360, height: 700 } })
    await view.goto(pathToFileURL(page).href)
    const width = await view.evaluate(() => document.documentElement.scrollWidth)
    expect(width).toBeLessThanOrEqual(360)
    await view.close()
  })

  it('stays small for a long log', async () => {
    const key = 'k'.repeat(200)
    const entries = Array.from({ length: 20_000 }, (_, i) => ({ atMs: i * 2931, key: `${key}${i % 8000}` }))
    const long = log('long.jsonl', entries)
    const report = join(folder.path, 'long.html')
    expect(
      (
        await replay(long, report, [
          '--limit',
          '2/1h',
          '--limit',
          '9/1d',
          '--compare',
          'fixed',
          '--top',
          '100',
        ])
      ).code,
    ).toBe(0)
    expect(statSync(report).size).toBeLessThan(300_000)
  })

  it('replaces the previous report and nothing else', async () => {
    const file = log('own.jsonl', burst(0, 3))
    const report = folder.write('own.html', 'the former one')
    expect((await replay(file, report)).code).toBe(0)
    expect(readFileSync(report, 'utf8')).toMatch(/^<!doctype html>/)
    const link = join(folder.path, 'link.html')
    linkSync(file, link)
    const before = readFileSync(file, 'utf8')
    for (const input of [file, link]) {
      const { code, stderr } = await replay(file, input)
      expect([code, stderr]).toEqual([2, expect.stringMatching(/this is the log to replay\n$/)])
    }
    expect(readFileSync(file, 'utf8')).toBe(before)
    const inside = join(folder.path, 'folder.html')
    mkdirSync(inside)
    expect((await replay(file, inside)).stderr).toMatch(/not a regular file\n$/)
    const nowhere = await replay(file, join(folder.path, 'nowhere/report.html'))
    expect([nowhere.code, nowhere.stdout]).toEqual([1, ''])
    expect(nowhere.stderr).toMatch(/^slidegate: can't write /)
    expect(readdirSync(folder.path).filter((name) => name.endsWith('.tmp'))).toEqual([])
  })

  it("keeps the previous report if it can't be completed", async () => {
    const report = folder.write('kept.html', 'the former one')
    const { code } = await replay(join(folder.path, 'not-there.jsonl'), report)
    expect(code).toBe(1)
    expect(readFileSync(report, 'utf8')).toBe('the former one')
  })

  it('reports that a log has no requests', async () => {
    const report = join(folder.path, 'empty.html')
    expect((await replay(folder.write('empty.jsonl', ''), report)).code).toBe(0)
    expect(readFileSync(report, 'utf8')).toContain('No requests.')
  })
})

function appendTorn(file: string): void {
  chmodSync(file, 0o644)
  writeFileSync(file, '{"time":"2026-03-09T12', { flag: 'a' })
}
