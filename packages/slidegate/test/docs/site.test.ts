// tier: system
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { addressOf } from '../../../../docs/.vitepress/addresses.ts'
import { GROUPS } from '../../../../docs/.vitepress/sidebar.ts'
import { violationsIn } from '../../../dashboard/test/support/axe.ts'
import { openWindow } from '../../../dashboard/test/support/browser.ts'
import { pages, ROOT } from './markdown.ts'
import { type BuiltSite, buildSite } from './site.ts'

// Tests the documentation site, built with a base path.

let site: BuiltSite
let html: Map<string, string>
beforeAll(async () => {
  site = await buildSite()
  html = new Map([...site.files].filter(([name]) => name.endsWith('.html')))
}, 900_000)
afterAll(async () => {
  await site[Symbol.asyncDispose]()
})

/** One page of each type. */
const SAMPLES = {
  'the front page': '/',
  'the README': '/overview',
  'a page of tables': '/configuration',
  'a page of pictures': '/limits',
  'the reference': '/reference/slidegate/redis',
}

// Match HTML, styles and scripts that load from other servers.
const LOADING_TAG =
  /(<(?:script|link|img|iframe|source|video|audio|object|embed|image|use)\b[^>]*?(?:src|srcset|href|data)=\\?["'](?:https?:)?\/\/[^>]*>)/g
const LOADING_CODE = /((?:@import|url\(|\bimport\(|\bfetch\()\s*\\?["'`]?(?:https?:)?\/\/[^\s"'`)]*)/g

/** Returns the file at an address. */
const fileOf = (address: string) =>
  [`${address}.html`, `${address}index.html`, address]
    .map((file) => file.slice(1))
    .find((file) => site.files.has(file))

const written = () => pages().map(({ path }) => path)
const generated = () =>
  readdirSync(join(ROOT, 'docs/reference'), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.md'))
    .map((name) => `docs/reference/${name}`)

describe('the site', () => {
  it('builds without warnings', () => {
    expect(site.log.split('\n').filter((line) => /warn|error|\(!\)|falling back/i.test(line))).toEqual([])
  })

  it('lists every page once in its sidebar', () => {
    const listed = Object.values(GROUPS).flatMap((entries) => entries.map(([, file]) => file))
    expect(listed.toSorted()).toEqual([...written(), ...generated()].toSorted())
  })

  it('contains a page for each Markdown file', () => {
    expect(written().filter((path) => fileOf(addressOf(path)) === undefined)).toEqual([])
  })

  it('links only to existing pages and anchors', () => {
    const ids = new Map<string, Set<string>>()
    const idsOf = (file: string) => {
      if (!ids.has(file)) ids.set(file, new Set(matches(site.files.get(file)!, / id="([^"]*)"/g)))
      return ids.get(file)!
    }
    /** Link -> page with it. */
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

  it('loads nothing from other servers', async () => {
    const texts = [...site.files].flatMap(([name, text]) => (/\.(html|css|js)$/.test(name) ? text : []))
    // Listings contain code that doesn't run.
    const withoutListings = (text: string) => text.replaceAll(/<pre\b.*?<\/pre>/gs, '')
    const loads = texts.flatMap((text) => [
      ...matches(text, LOADING_TAG),
      ...matches(withoutListings(text), LOADING_CODE),
    ])
    // The theme has icons for social links, which the site doesn't use.
    const elsewhere = loads.filter(
      (load) => !load.startsWith("url('https://api.iconify.design/simple-icons/"),
    )
    expect(elsewhere).toEqual([])
    expect(matches([...html.values()].join(), /(class="[^"]*VPSocialLink)/g)).toEqual([])
  })

  it.each([
    ['express', /\/guides\/express/],
    ['token bucket', /\/limits\/token-bucket/],
    ['nginx', /\/gateways/],
  ])('a search for "%s" lists the guide first', async (words, address) => {
    await using window = await openWindow(site.url)
    const { page } = window
    const input = page.locator('#localsearch-input')
    // The page ignores the shortcut until its scripts have run.
    await expect
      .poll(async () => {
        await page.keyboard.press('Control+k')
        return input.isVisible()
      })
      .toBe(true)
    await input.fill(words)
    const first = page.locator('.VPLocalSearchBox a.result').first()
    await expect.poll(() => first.getAttribute('href'), { timeout: 10_000 }).toMatch(address)
    await first.click()
    await page.waitForURL(address)
    expect([...window.origins]).toEqual([new URL(site.url).origin])
  })

  it('links from a page to a source, and to the reference', async () => {
    await using window = await openWindow(site.url)
    const { page } = window
    await page.goto(`${site.url}/limits/fixed-window`)
    await page.locator('main a[href$=".test.ts.txt"]').first().click()
    await page.waitForURL(/\/source\/.*\.test\.ts\.txt$/)
    expect(await page.locator('pre').innerText()).toContain("from 'vitest'")
    expect(await page.evaluate('document.characterSet')).toBe('UTF-8')
    await page.goBack()
    await page.locator('main h1', { hasText: 'Fixed window' }).waitFor()
    await page.getByRole('navigation', { name: 'Main Navigation' }).getByText('Reference').click()
    await page.locator('main').getByRole('link', { name: 'slidegate/redis' }).click()
    await page.getByRole('heading', { name: /^redisStore\(\)/ }).waitFor()
    expect([...window.origins]).toEqual([new URL(site.url).origin])
  })

  it.each(Object.entries(SAMPLES))('meets accessibility rules: %s', async (_, address) => {
    await using window = await openWindow(site.url)
    const { page } = window
    await page.goto(`${site.url}${address}`)
    for (const colorScheme of ['light', 'dark'] as const) {
      // Disables color transitions.
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
