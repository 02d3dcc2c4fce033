// tier: system
import { readFileSync, writeFileSync } from 'node:fs'
import { pino } from 'pino'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { loadConfig } from '../../server/src/config/load.ts'
import { type RunningService, startService } from '../../server/src/service/running.ts'
import { temporaryFolder } from '../../server/test/support/cli.ts'
import { violationsIn } from './support/axe.ts'
import { type TestBrowser, type TestWindow, testBrowser, type WindowOptions } from './support/browser.ts'
import { TOKENS } from './support/limiters.ts'

const EVIL = '<img src=x onerror=window.__hacked=1>'

const CONFIG = `listen:
  http: 127.0.0.1:0
  grpc: false
auth:
  tokens:
    - { name: reader, role: read, token: ${TOKENS.read} }
    - { name: operator, role: admin, token: ${TOKENS.admin} }
limiters:
  api:
    limits:
      - { kind: slidingWindow, limit: 100, window: 1m, name: minute }
      - { kind: slidingWindow, limit: 1000, window: 1h, name: hour }
  login:
    limits:
      - { kind: fixedWindow, limit: 5, window: 15m }
`

const folder = temporaryFolder()
let browser: TestBrowser
let service: RunningService
let file: string
beforeAll(async () => {
  browser = await testBrowser()
  file = folder.write('slidegate.yaml', CONFIG)
  const environment = {}
  const loaded = loadConfig(file, { environment })
  service = await startService({ loaded, log: pino({ level: 'silent' }), environment })
})
afterAll(async () => {
  await service.stop()
  await browser[Symbol.asyncDispose]()
  folder.remove()
})

function configuration(options: WindowOptions = {}): Promise<TestWindow> {
  return browser.open(service.httpUrl, { token: TOKENS.admin, ...options, at: '/configuration' })
}

/** With something else in the file, and what was there afterwards. */
function rewritten(text: string): Disposable {
  writeFileSync(file, text)
  return { [Symbol.dispose]: () => writeFileSync(file, CONFIG) }
}

function region({ page }: TestWindow, name: string) {
  return page.getByRole('region', { name, exact: true })
}

describe('the page of the configuration', () => {
  it('tells what is in force, without secrets', async () => {
    await using window = await configuration({ token: TOKENS.read })
    const inForce = await region(window, 'In force').locator('pre').innerText()
    expect(inForce).toMatch(/limit: 1000/)
    await region(window, 'File').getByText('What it says is in force.').waitFor()
    const all = await window.page.content()
    for (const secret of [TOKENS.read, TOKENS.admin]) expect(all).not.toContain(secret)
    expect(inForce).toContain('token: "***"')
  })

  it('tells how the file differs, by words and signs', async () => {
    using _ = rewritten(CONFIG.replace('limit: 1000', 'limit: 2000'))
    await using window = await configuration()
    await region(window, 'File').getByText('lines added 1, removed 1').waitFor()
    const lines = await region(window, 'From what is in force to the file')
      .getByRole('listitem')
      .allTextContents()
    expect(lines.filter((line) => /added|removed/.test(line))).toEqual([
      expect.stringMatching(/^− removed: +limit: 1000$/),
      expect.stringMatching(/^\+ added: +limit: 2000$/),
    ])
    expect(lines.filter((line) => line.startsWith('…')).length).toBeGreaterThan(0)
    expect(await region(window, 'In force').locator('pre').innerText()).toMatch(/limit: 1000/)
  })

  it('tells what is wrong with the file, and where', async () => {
    using _ = rewritten(CONFIG.replace('window: 15m', `window: "${EVIL}"`))
    await using window = await configuration()
    const problem = region(window, 'File').getByRole('listitem')
    await problem.filter({ hasText: /^line 15, column \d+: .*<img src=x onerror=/ }).waitFor()
    expect(await window.page.locator('main img').count()).toBe(0)
    expect(await window.page.evaluate('window.__hacked')).toBeUndefined()
  })

  it('looks again when it is asked to', async () => {
    await using window = await configuration()
    await region(window, 'File').getByText('What it says is in force.').waitFor()
    using _ = rewritten('limiters: [')
    await window.page.getByRole('button', { name: 'Look again' }).click()
    await region(window, 'File').getByText('cannot be put in force').waitFor()
  })

  it('tells what operators have said', async () => {
    await using window = await configuration()
    const words = region(window, 'Set by operators')
    await words.getByText('Nothing: all limits are as the configuration says.').waitFor()
    const say = async (body: object) => {
      const headers = { authorization: `Bearer ${TOKENS.admin}`, 'content-type': 'application/json' }
      const init = { method: 'POST', headers, body: JSON.stringify(body) }
      expect((await fetch(`${service.httpUrl}/v1/admin/shadow`, init)).status).toBe(200)
    }
    await say({ limiter: 'api', limit: 'hour', shadow: true })
    await say({ limiter: 'login', shadow: false })
    await window.page.getByRole('button', { name: 'Look again' }).click()
    await words.getByRole('row', { name: 'api hour shadow: only counts' }).waitFor()
    await words.getByRole('row', { name: 'login all enforced' }).waitFor()
  })
})

describe('a change that is tried', () => {
  async function tried(window: TestWindow, text: string): Promise<void> {
    await window.page.getByLabel('A whole configuration, in YAML or JSON').fill(text)
    await window.page.getByRole('button', { name: 'Check it' }).click()
  }

  it('is told in a difference, and not put in force', async () => {
    await using window = await configuration()
    await tried(window, CONFIG.replace('limit: 5,', 'limit: 7,'))
    const change = region(window, 'Try a change')
    await change.getByText('It is valid, and would change what is in force.').waitFor()
    await change.getByText('lines added 1, removed 1').waitFor()
    expect(readFileSync(file, 'utf8')).toBe(CONFIG)
    await window.page.getByRole('button', { name: 'Look again' }).click()
    expect(await region(window, 'In force').locator('pre').innerText()).toMatch(/limit: 5\n/)
  })

  it('may begin with what is in force', async () => {
    await using window = await configuration()
    await window.page.getByRole('button', { name: 'Begin with what is in force' }).click()
    const area = window.page.getByLabel('A whole configuration, in YAML or JSON')
    const text = await area.inputValue()
    let secrets = 0
    expect(text).toBe(await region(window, 'In force').locator('pre').innerText())
    await tried(
      window,
      text.replaceAll('"***"', () => `another-secret-of-its-own-${++secrets}`),
    )
    await region(window, 'Try a change')
      .getByRole('status')
      .getByText(/It is valid/)
      .waitFor()
  })

  it('is told to be wrong, with a way to the place, by the keyboard', async () => {
    await using window = await configuration()
    const { page } = window
    await tried(window, CONFIG.replace('limit: 5,', `limit: "${EVIL}",`))
    const place = region(window, 'Try a change').getByRole('button', { name: /^line 15, column \d+$/ })
    await place.focus()
    await page.keyboard.press('Enter')
    const before = await page.evaluate<string>(
      'document.activeElement.value.slice(0, document.activeElement.selectionStart)',
    )
    expect(before.split('\n').length).toBe(15)
    expect(await page.locator('main img').count()).toBe(0)
    // Whoever types on is not told of what was there before.
    await page.keyboard.type('x')
    await place.waitFor({ state: 'detached' })
  })

  it('is not for whoever may only read', async () => {
    await using window = await configuration({ token: TOKENS.read })
    await region(window, 'Try a change').getByText('It needs a token of the role admin.').waitFor()
    expect(await window.page.getByRole('textbox').count()).toBe(0)
  })
})

describe('with problems and differences', () => {
  const changed = CONFIG.replace('limit: 1000', 'limit: 2000')

  it.each(['light', 'dark'] as const)('axe finds nothing wrong in %s', async (theme) => {
    using _ = rewritten(changed)
    await using window = await configuration({ theme })
    const { page } = window
    await page.getByLabel('A whole configuration, in YAML or JSON').fill(CONFIG.replace('5,', '-5,'))
    await page.getByRole('button', { name: 'Check it' }).click()
    await page.getByText('It could not be put in force').waitFor()
    expect(await violationsIn(window)).toEqual([])
  })

  it('it fits on a phone', async () => {
    using _ = rewritten(changed)
    await using window = await configuration({ size: { width: 390, height: 844 } })
    const { page } = window
    await region(window, 'File').getByText('lines added 1').waitFor()
    await page.getByLabel('A whole configuration, in YAML or JSON').fill(`${'x'.repeat(500)}: 1`)
    await expect.poll(() => page.evaluate('document.documentElement.scrollWidth')).toBe(390)
  })
})
