import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { type BrowserContextOptions, chromium, type Page } from 'playwright-core'

const BUILT = fileURLToPath(new URL('../../../server/page/index.html', import.meta.url))

export interface TestBrowser extends AsyncDisposable {
  /**
   * Opens a page, or an admin link.
   *
   * A window of its own, with nothing kept from others. `await using` closes it, and throws where something was wrong in it. */
  open(url: string, options?: WindowOptions): Promise<TestWindow>
}

export interface WindowOptions {
  /** Who looks. Default: nobody has said. */
  readonly token?: string
  /** Default: 1280x800. */
  readonly size?: { readonly width: number; readonly height: number }
  readonly theme?: 'light' | 'dark'
  /** The place behind the #. Default: `/`. */
  readonly at?: string
}

export interface TestWindow extends AsyncDisposable {
  readonly page: Page
  /** Whom the page has asked. */
  readonly origins: ReadonlySet<string>
  /** Errors that belong to what is tested: told of before it is closed. */
  expect(errors: RegExp): void
  /** Goes to another page. */
  go(at: string): Promise<void>
  /** From now on it is noted for how long scripts and layout keep the page from answering. */
  watchLongTasks(): Promise<void>
  /**
   * The third longest so far; those of less than 50 ms are not told. A machine that pauses makes any task long, once: a page
   * that blocks does so each time.
   */
  longTaskMs(): Promise<number>
}

const DESKTOP = { width: 1280, height: 800 }
const STEP_MS = 120_000

const WATCH = `window.longTasksMs = []
new PerformanceObserver((list) => {
  window.longTasksMs.push(...list.getEntries().map(({ duration }) => duration))
}).observe({ type: 'longtask' })`

/** Debian's Chromium, without a window on a screen. `await using` ends it. */
export async function testBrowser(): Promise<TestBrowser> {
  if (!existsSync(BUILT)) {
    throw new Error('the page is not built: npm run build -w slidegate-dashboard makes packages/server/page')
  }
  const browser = await chromium.launch({
    executablePath: '/usr/bin/chromium',
    args: ['--no-sandbox', '--disable-gpu', '--disable-background-networking', '--disable-dev-shm-usage'],
  })
  return {
    open: async (url, { token, size = DESKTOP, theme = 'light', at = '/' } = {}) => {
      const options: BrowserContextOptions = { viewport: size, colorScheme: theme, reducedMotion: 'reduce' }
      const context = await browser.newContext(options)
      context.setDefaultTimeout(STEP_MS)
      if (token !== undefined) {
        await context.addInitScript(`sessionStorage.setItem('slidegate.token', ${JSON.stringify(token)})`)
      }
      const page = await context.newPage()
      const origins = new Set<string>()
      const errors: string[] = []
      page.on('request', (request) => void origins.add(new URL(request.url()).origin))
      page.on('pageerror', (error) => void errors.push(`${error.stack}`))
      // Chromium tells of what its policy forbids as errors, too.
      page.on('console', (message) => {
        if (message.type() === 'error') errors.push(message.text())
      })
      const [path = '', query] = url.split('?')
      const base = `${path.replace(/\/$/, '')}/`
      const go = async (place: string) => void (await page.goto(`${base}#${place}`))
      await page.goto(`${base}${query === undefined ? '' : `?${query}`}#${at}`)
      let expected: RegExp | undefined
      return {
        page,
        origins,
        go,
        expect: (wanted) => {
          expected = wanted
        },
        watchLongTasks: () => page.evaluate(WATCH),
        longTaskMs: () => page.evaluate<number>('window.longTasksMs.toSorted((a, b) => b - a)[2] ?? 0'),
        [Symbol.asyncDispose]: async () => {
          await context.close()
          const wrong = errors.filter((error) => expected?.test(error) !== true)
          if (wrong.length > 0) throw new Error(`the page has errors:\n${wrong.join('\n')}`)
        },
      }
    },
    [Symbol.asyncDispose]: () => browser.close(),
  }
}
