import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core'

const BUILT = fileURLToPath(new URL('../../../server/page/index.html', import.meta.url))

export interface WindowOptions {
  /** The token. Default: none. */
  readonly token?: string
  /** Default: 1280x800. */
  readonly size?: { readonly width: number; readonly height: number }
  readonly theme?: 'light' | 'dark'
  /** The route after the #. Default: `/`. */
  readonly at?: string
}

export interface TestWindow extends AsyncDisposable {
  readonly page: Page
  /** Origins that the page has sent requests to. */
  readonly origins: ReadonlySet<string>
  /** Accepts page errors that the test causes on purpose. Call it before the window closes. */
  expect(errors: RegExp): void
  /** Goes to another page. */
  go(at: string): Promise<void>
  /** Starts to record long tasks of scripts and layout. */
  watchLongTasks(): Promise<void>
  /**
   * The third longest task so far, of those from 50 ms.
   *
   * A machine stall makes a task long once. A page that blocks does so each time.
   */
  longTaskMs(): Promise<number>
}

/** Chromium. Debian's build without a window needs a third less CPU. */
export const CHROMIUM: string = ['/usr/bin/chromium-headless-shell', '/usr/bin/chromium'].find(existsSync)!

const DESKTOP = { width: 1280, height: 800 }
const STEP_MS = 120_000

const WATCH = `window.longTasksMs = []
new PerformanceObserver((list) => {
  window.longTasksMs.push(...list.getEntries().map(({ duration }) => duration))
}).observe({ type: 'longtask' })`

let browser: Promise<Browser> | undefined

/** Starts Chromium, headless. All tests of a process share it, and it ends with the process. */
function start(): Promise<Browser> {
  if (!existsSync(BUILT)) {
    throw new Error('the dashboard is not built: run npm run build -w slidegate-dashboard')
  }
  return chromium.launch({
    executablePath: CHROMIUM,
    args: ['--no-sandbox', '--disable-gpu', '--disable-background-networking', '--disable-dev-shm-usage'],
  })
}

/**
 * Opens a page or an admin link in a window with separate storage.
 *
 * `await using` closes it, and throws if the page had errors.
 */
export async function openWindow(
  url: string,
  { token, size = DESKTOP, theme = 'light', at = '/' }: WindowOptions = {},
): Promise<TestWindow> {
  browser ??= start()
  const options: BrowserContextOptions = { viewport: size, colorScheme: theme, reducedMotion: 'reduce' }
  const context = await (await browser).newContext(options)
  context.setDefaultTimeout(STEP_MS)
  if (token !== undefined) {
    await context.addInitScript(`sessionStorage.setItem('slidegate.token', ${JSON.stringify(token)})`)
  }
  const page = await context.newPage()
  const origins = new Set<string>()
  const errors: string[] = []
  page.on('request', (request) => void origins.add(new URL(request.url()).origin))
  page.on('pageerror', (error) => void errors.push(`${error.stack}`))
  // Violations of the page's policy are errors, too.
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
}
