import { codeBlocks, hasCommands, type Page } from './markdown.ts'

/** A snippet of the documentation as a program. */
export interface Program {
  /** Page and line: `README.md:17`. */
  readonly name: string
  readonly page: string
  readonly extension: 'mts' | 'mjs'
  readonly code: string
  /** Whether the page saves it as a file and runs it with a command. */
  readonly isSaved: boolean
}

/** The address of a Redis that doesn't exist. */
const NO_REDIS = 'new Redis({ port: 1 })'

/** Documented addresses, which the tests replace. */
const REDIS_URL = 'redis://127.0.0.1:6379'
const LISTEN = {
  '.listen(3000)': ".listen(Number(process.env.PORT), '127.0.0.1')",
  '.listen({ port: 3000 })': ".listen({ port: Number(process.env.PORT), host: '127.0.0.1' })",
  'serve({ fetch: app.fetch, port: 3000 })':
    "serve({ fetch: app.fetch, port: Number(process.env.PORT), hostname: '127.0.0.1' })",
}

/** Returns the snippets of a page. One without imports continues the previous one. */
export function programsOf(page: Page): Program[] {
  const { path, text } = page
  const programs: Program[] = []
  for (const { language, code, line, file } of codeBlocks(text)) {
    if (language !== 'ts' && language !== 'js') continue
    const before = /^import /m.test(code) ? '' : `${programs.at(-1)?.code ?? ''}\n`
    const extension = language === 'ts' ? 'mts' : 'mjs'
    const isSaved = file !== undefined && hasCommands(page)
    programs.push({ name: `${path}:${line}`, page: path, extension, code: before + code, isSaved })
  }
  return programs
}

export function isServer({ code }: Program): boolean {
  return Object.keys(LISTEN).some((listen) => code.includes(listen))
}

export function needsRedis({ code }: Program): boolean {
  return code.includes(REDIS_URL)
}

/** Returns the program with the test's Redis and port. */
export function onServers(program: Program, redisUrl: string): Program {
  return { ...program, code: codeOnServers(program.code, redisUrl) }
}

const MAKES_LIMITER = /\b(createLimiter|upstreamLimiter|slidingCount|new SlidegateThrottlerStorage)\(\{/g

export function codeOnServers(code: string, redisUrl: string, timeoutMs = 30_000): string {
  let own = code.replaceAll(REDIS_URL, redisUrl)
  for (const [listen, elsewhere] of Object.entries(LISTEN)) own = own.replaceAll(listen, elsewhere)
  // Without Redis, every request times out, so a longer timeout would only slow the test.
  if (own.includes(NO_REDIS)) return own
  // Sets long timeouts, so that the output is the same on a slow machine.
  if (!own.includes('timeoutMs')) own = own.replaceAll(MAKES_LIMITER, '$& timeoutMs: 50,')
  return own.replaceAll(/timeoutMs: \d+/g, `timeoutMs: ${timeoutMs}`)
}

/** Returns the output in comments, after or below each `console.log()`. */
export function expectedOutput({ code }: Program): string {
  const printed: string[] = []
  const lines = code.split('\n')
  lines.forEach((line, i) => {
    const call = /^\s*console\.log\(.*\)(?: \/\/ (.*))?$/.exec(line)
    if (call === null) return
    if (call[1] !== undefined) printed.push(call[1])
    else for (let next = i + 1; /^\/\/ /.test(lines[next] ?? ''); next++) printed.push(lines[next]!.slice(3))
  })
  return printed.map((line) => `${line}\n`).join('')
}
