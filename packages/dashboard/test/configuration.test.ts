// tier: system
import { readFileSync, writeFileSync } from 'node:fs'
import { pino } from 'pino'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { loadConfig } from '../../server/src/config/load.ts'
import { type RunningService, startService } from '../../server/src/service/running.ts'
import { temporaryFolder } from '../../server/test/support/cli.ts'
import { violationsIn } from './support/axe.ts'
import { openWindow, type TestWindow, type WindowOptions } from './support/browser.ts'
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
let service: RunningService
let file: string
beforeAll(async () => {
  file = folder.write('slidegate.yaml', CONFIG)
  const environment = {}
  const loaded = loadConfig(file, { environment })
  service = await startService({ loaded, log: pino({ level: 'silent' }), environment })
})
afterAll(async () => {
  await service.stop()
  folder.remove()
})

function configuration(options: WindowOptions = {}): Promise<TestWindow> {
  return openWindow(service.httpUrl, { token: TOKENS.admin, ...options, at: '/configuration' })
}

/** Replaces the file's text until it is disposed. */
function rewritten(text: string): Disposable {
  writeFileSync(file, text)
  return { [Symbol.dispose]: () => writeFileSync(file, CONFIG) }
}

function region({ page }: TestWindow, name: string) {
  return page.getByRole('region', { name, exact: true })
}

describe('the configuration page', () => {
  it('shows the active configuration without secrets', async () => {
    await using window = await configuration({ token: TOKENS.read })
    const inForce = await region(window, 'Active').locator('pre').innerText()
    expect(inForce).toMatch(/limit: 1000/)
    await region(window, 'File').getByText('The file is active.').waitFor()
    const all = await window.page.content()
    for (const secret of [TOKENS.read, TOKENS.admin]) expect(all).not.toContain(secret)
    expect(inForce).toContain('token: "***"')
  })

  it('shows how the file differs, by words and signs', async () => {
    using _ = rewritten(CONFIG.replace('limit: 1000', 'limit: 2000'))
    await using window = await configuration()
    await region(window, 'File').getByText('1 added, 1 removed').waitFor()
    const lines = await region(window, 'Changes in the file').getByRole('listitem').allTextContents()
    expect(lines.filter((line) => /added|removed/.test(line))).toEqual([
      expect.stringMatching(/^− removed: +limit: 1000$/),
      expect.stringMatching(/^\+ added: +limit: 2000$/),
    ])
    expect(lines.filter((line) => line.startsWith('…')).length).toBeGreaterThan(0)
    expect(await region(window, 'Active').locator('pre').innerText()).toMatch(/limit: 1000/)
  })

  it('shows problems of the file with their places', async () => {
    using _ = rewritten(CONFIG.replace('window: 15m', `window: "${EVIL}"`))
    await using window = await configuration()
    const problem = region(window, 'File').getByRole('listitem')
    await problem.filter({ hasText: /^line 15, column \d+: .*<img src=x onerror=/ }).waitFor()
    expect(await window.page.locator('main img').count()).toBe(0)
    expect(await window.page.evaluate('window.__hacked')).toBeUndefined()
  })

  it('reloads with a button', async () => {
    await using window = await configuration()
    await region(window, 'File').getByText('The file is active.').waitFor()
    using _ = rewritten('limiters: [')
    await window.page.getByRole('button', { name: 'Reload' }).click()
    await region(window, 'File').getByText('The file is invalid').waitFor()
  })

  it('shows the settings of operators', async () => {
    await using window = await configuration()
    const words = region(window, 'Set by operators')
    await words.getByText('All limits are as configured.').waitFor()
    const say = async (body: object) => {
      const headers = { authorization: `Bearer ${TOKENS.admin}`, 'content-type': 'application/json' }
      const init = { method: 'POST', headers, body: JSON.stringify(body) }
      expect((await fetch(`${service.httpUrl}/v1/admin/shadow`, init)).status).toBe(200)
    }
    await say({ limiter: 'api', limit: 'hour', shadow: true })
    await say({ limiter: 'login', shadow: false })
    await window.page.getByRole('button', { name: 'Reload' }).click()
    await words.getByRole('row', { name: 'api hour shadow: never denies' }).waitFor()
    await words.getByRole('row', { name: 'login all enforced' }).waitFor()
  })
})

describe('a draft configuration', () => {
  async function tried(window: TestWindow, text: string): Promise<void> {
    await window.page.getByLabel('A complete configuration, in YAML or JSON').fill(text)
    await window.page.getByRole('button', { name: 'Check', exact: true }).click()
  }

  it('shows its differences and is not applied', async () => {
    await using window = await configuration()
    await tried(window, CONFIG.replace('limit: 5,', 'limit: 7,'))
    const change = region(window, 'Try a change')
    await change.getByText('The configuration is valid and makes these changes.').waitFor()
    await change.getByText('1 added, 1 removed').waitFor()
    expect(readFileSync(file, 'utf8')).toBe(CONFIG)
    await window.page.getByRole('button', { name: 'Reload' }).click()
    expect(await region(window, 'Active').locator('pre').innerText()).toMatch(/limit: 5\n/)
  })

  it('starts from the active configuration on request', async () => {
    await using window = await configuration()
    await window.page.getByRole('button', { name: 'Start from the active configuration' }).click()
    const area = window.page.getByLabel('A complete configuration, in YAML or JSON')
    const text = await area.inputValue()
    let secrets = 0
    expect(text).toBe(await region(window, 'Active').locator('pre').innerText())
    await tried(
      window,
      text.replaceAll('"***"', () => `another-secret-of-its-own-${++secrets}`),
    )
    await region(window, 'Try a change')
      .getByRole('status')
      .getByText(/is valid/)
      .waitFor()
  })

  it('shows its problems with links to their places, by keyboard', async () => {
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
    // Typing removes the problems of the text before.
    await page.keyboard.type('x')
    await place.waitFor({ state: 'detached' })
  })

  it('needs the role admin', async () => {
    await using window = await configuration({ token: TOKENS.read })
    await region(window, 'Try a change').getByText('This requires a token with the admin role.').waitFor()
    expect(await window.page.getByRole('textbox').count()).toBe(0)
  })
})

describe('the configuration page with problems and differences', () => {
  const changed = CONFIG.replace('limit: 1000', 'limit: 2000')

  it.each(['light', 'dark'] as const)('passes axe in %s', async (theme) => {
    using _ = rewritten(changed)
    await using window = await configuration({ theme })
    const { page } = window
    await page.getByLabel('A complete configuration, in YAML or JSON').fill(CONFIG.replace('5,', '-5,'))
    await page.getByRole('button', { name: 'Check', exact: true }).click()
    await page.getByText('The configuration is invalid:').waitFor()
    expect(await violationsIn(window)).toEqual([])
  })

  it('fits on a phone', async () => {
    using _ = rewritten(changed)
    await using window = await configuration({ size: { width: 390, height: 844 } })
    const { page } = window
    await region(window, 'File').getByText('1 added').waitFor()
    await page.getByLabel('A complete configuration, in YAML or JSON').fill(`${'x'.repeat(500)}: 1`)
    await expect.poll(() => page.evaluate('document.documentElement.scrollWidth')).toBe(390)
  })
})
