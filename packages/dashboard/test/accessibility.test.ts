import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type TestService, testService } from '../../server/test/support/service.ts'
import { type TestBrowser, type TestWindow, testBrowser } from './support/browser.ts'
import { LIMITERS } from './support/limiters.ts'
import { ask } from './support/load.ts'

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
const PHONE = { width: 360, height: 740 }

/** A place, and what is there once it is all there. */
const PLACES: readonly (readonly [place: string, shows: RegExp])[] = [
  ['/', /in all/],
  ['/limiters/api', /of 520 requests/],
  ['/limiters/login', /of 9 requests/],
  ['/limiters/api/keys/user%3A1', /user:1/],
  ['/simulator', /./],
  ['/configuration', /limiters/],
  ['/audit', /Changes|reset/],
]

let browser: TestBrowser
let service: TestService
beforeAll(async () => {
  browser = await testBrowser()
  service = await testService({ limiters: LIMITERS })
  const keys = Array.from({ length: 520 }, (_, i) => `user:${i % 3 === 0 ? 1 : i % 40}`)
  await ask(service, 'api', keys)
  await ask(service, 'login', new Array(9).fill({ user: 'ann', address: '203.0.113.7' }))
  await service.post('/v1/admin/reset', { limiter: 'api', key: 'user:39' })
})
afterAll(async () => {
  await service[Symbol.asyncDispose]()
  await browser[Symbol.asyncDispose]()
})

interface Violation {
  readonly id: string
  readonly impact: string
  readonly help: string
  readonly nodes: readonly { readonly html: string; readonly failureSummary: string }[]
}

async function violationsIn({ page }: TestWindow): Promise<string[]> {
  // By way of the protocol: the policy of the page lets nothing else in.
  await page.evaluate(AXE)
  const { violations } = await page.evaluate<{ violations: Violation[] }>('axe.run()')
  return violations.map(
    ({ id, impact, help, nodes }) =>
      `${impact} ${id}: ${help}\n${nodes.map(({ html, failureSummary }) => `  ${html}\n  ${failureSummary}`).join('\n')}`,
  )
}

describe.each(['light', 'dark'] as const)('in %s', (theme) => {
  it.each(PLACES)('axe finds nothing wrong with %s', async (at, shows) => {
    await using window = await browser.open(service.httpUrl, { at, theme })
    await window.page.getByRole('main').getByText(shows).first().waitFor()
    expect(await violationsIn(window)).toEqual([])
  })

  it('axe finds nothing wrong with a dialog', async () => {
    await using window = await browser.open(service.httpUrl, { at: '/limiters/api', theme })
    await window.page.getByRole('button', { name: 'Make it a shadow limit' }).click()
    expect(await violationsIn(window)).toEqual([])
  })
})

it.each(PLACES)('%s fits on a phone', async (at, shows) => {
  await using window = await browser.open(service.httpUrl, { at, size: PHONE })
  const { page } = window
  await page.getByRole('main').getByText(shows).first().waitFor()
  expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(PHONE.width)
})
