// tier: system
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { addressOf } from '../../../../docs/.vitepress/addresses.ts'
import { GROUPS } from '../../../../docs/.vitepress/sidebar.ts'
import { violationsIn } from '../../../dashboard/test/support/axe.ts'
import { type TestBrowser, testBrowser } from '../../../dashboard/test/support/browser.ts'
import { pages, ROOT } from './markdown.ts'
import { type BuiltSite, buildSite } from './site.ts'

// The site is built once, for a host on which it is not alone.

let site: BuiltSite
let html: Map<string, string>
let browser: TestBrowser
beforeAll(async () => {
  site = await buildSite()
  html = await site.files('.html')
  browser = await testBrowser()
}, 900_000)
afterAll(async () => {
  await browser[Symbol.asyncDispose]()
  await site[Symbol.asyncDispose]()
})

/** Pages as different from each other as there are. */
const SAMPLES = {
  'the first page': '/',
  'a page of tables': '/configuration',
  'a page of pictures': '/limits',
  'the reference': '/reference/slidegate/redis',
  'a source': '/source/packages/server/examples/slidegate.yaml/',
}

// What makes a browser ask a server other than ours: by an element, by a style or a script.
const LOADING_TAG =
  /(<(?:script|link|img|iframe|source|video|audio|object|embed|image|use)\b[^>]*?(?:src|srcset|href|data)=\\?["'](?:https?:)?\/\/[^>]*>)/g
const LOADING_CODE = /((?:@import|url\(|\bimport\(|\bfetch\()\s*\\?["'`]?(?:https?:)?\/\/[^\s"'`)]*)/g

/** The file of a page, by its address within the site. */
const fileOf = (address: string) =>
  [`${address}.html`, `${address}index.html`].map((file) => file.slice(1)).find((file) => html.has(file))

const written = () => pages().map(({ path }) => path)
const generated = () =>
  readdirSync(join(ROOT, 'docs/reference'), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.md'))
    .map((name) => `docs/reference/${name}`)

describe('the site', () => {
  it('is built without a warning', () => {
    expect(site.log.split('\n').filter((line) => /warn|error|\(!\)|falling back/i.test(line))).toEqual([])
  })

  it('has every page in its sidebar, once, and nothing else', () => {
    const listed = Object.values(GROUPS).flatMap((entries) => entries.map(([, file]) => file))
    expect(listed.toSorted()).toEqual([...written(), ...generated()].toSorted())
  })

  it('has a page for each Markdown file', () => {
    expect(written().filter((path) => fileOf(addressOf(path)) === undefined)).toEqual([])
  })

  it('links only to pages that it has, and to places on them', () => {
    const ids = new Map<string, Set<string>>()
    const idsOf = (file: string) => {
      if (!ids.has(file)) ids.set(file, new Set(matches(html.get(file)!, / id="([^"]*)"/g)))
      return ids.get(file)!
    }
    /** And a page with each. */
    const dead = new Map<string, string>()
    for (const [file, text] of html) {
      const address = `${site.url}/${file.replace(/(index)?\.html$/, '')}`
      for (const link of matches(text, /<a [^>]*?href="([^"]*)"/g)) {
        const { href, pathname, hash } = new URL(link.replaceAll('&amp;', '&'), address)
        if (!href.startsWith(site.url) && /^(https?|mailto):/.test(link)) continue
        const target = pathname.startsWith(site.base)
          ? fileOf(pathname.slice(site.base.length - 1))
          : undefined
        const place = decodeURIComponent(hash.slice(1))
        if (target === undefined || (place !== '' && !idsOf(target).has(place))) dead.set(link, file)
      }
    }
    expect(Object.fromEntries(dead)).toEqual({})
  })

  it('loads nothing from elsewhere', async () => {
    const texts = [html, await site.files('.css'), await site.files('.js')].flatMap((each) => [
      ...each.values(),
    ])
    const loads = texts.flatMap((text) => [...matches(text, LOADING_TAG), ...matches(text, LOADING_CODE)])
    // The theme's, for links to networks, of which the site has none.
    const elsewhere = loads.filter(
      (load) => !load.startsWith("url('https://api.iconify.design/simple-icons/"),
    )
    expect(elsewhere).toEqual([])
    expect(matches([...html.values()].join(), /(class="[^"]*VPSocialLink)/g)).toEqual([])
  })

  it('finds what is searched for', async () => {
    await using window = await browser.open(site.url)
    const { page } = window
    await page.waitForLoadState('networkidle')
    await page.keyboard.press('Control+k')
    await page.locator('#localsearch-input').fill('token bucket')
    await page.locator('.VPLocalSearchBox .result', { hasText: 'tokenBucket()' }).click()
    await page.waitForURL(/\/reference\/slidegate#tokenBucket$/)
    await page.getByRole('heading', { name: /^tokenBucket\(\)/ }).waitFor()
    expect([...window.origins]).toEqual([new URL(site.url).origin])
  })

  it('leads from a page to a source and back, and to the reference, by links', async () => {
    await using window = await browser.open(site.url)
    const { page } = window
    await page.goto(`${site.url}/limits`)
    await page.locator('main a[href$=".test.ts/"]').first().click()
    await page.locator('main h1', { hasText: '.test.ts' }).waitFor()
    expect(page.url()).toMatch(/\/source\/.*\.test\.ts\/$/)
    expect(await page.locator('main pre').innerText()).toContain("from 'vitest'")
    await page.goBack()
    await page.locator('main h1', { hasText: 'Kinds of limits' }).waitFor()
    await page.getByRole('navigation', { name: 'Main Navigation' }).getByText('Reference').click()
    await page.locator('main').getByRole('link', { name: 'slidegate/redis' }).click()
    await page.getByRole('heading', { name: /^redisStore\(\)/ }).waitFor()
    expect([...window.origins]).toEqual([new URL(site.url).origin])
  })

  it.each(Object.entries(SAMPLES))('can be read by everybody: %s', async (_, address) => {
    await using window = await browser.open(site.url)
    const { page } = window
    await page.goto(`${site.url}${address}`)
    for (const colorScheme of ['light', 'dark'] as const) {
      // With no colours on their way from one to another.
      await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' })
      await page.locator(`html${colorScheme === 'dark' ? '.dark' : ':not(.dark)'}`).waitFor()
      expect(await violationsIn(window), colorScheme).toEqual([])
    }
    await page.setViewportSize({ width: 360, height: 740 })
    await expect.poll(() => page.evaluate<number>('document.documentElement.scrollWidth')).toBe(360)
  })
})

function matches(text: string, pattern: RegExp): string[] {
  return Array.from(text.matchAll(pattern), ([, found]) => found!)
}
