import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { DefaultTheme } from 'vitepress'
import { addressOf } from './addresses.ts'
import { pages, prose, ROOT } from './markdown.ts'

/** What a page is called where it is one of many, and its file. */
type Entry = readonly [text: string, file: string]

/** Those of a folder, by their titles. */
function pagesIn(folder: string): Entry[] {
  return pages()
    .filter(({ path }) => path.startsWith(`${folder}/`) && !path.endsWith('/README.md'))
    .map(({ path, text }) => [/^# (.*)$/m.exec(prose(text))?.[1] ?? path, path])
}

/** A page of the reference for each of the library's import paths. */
function referencePages(): Entry[] {
  const { name, exports } = JSON.parse(readFileSync(join(ROOT, 'packages/slidegate/package.json'), 'utf8'))
  return Object.keys(exports)
    .filter((path) => path !== './package.json')
    .map((path) => `${name}${path.slice(1)}`)
    .map((path) => [path, `docs/reference/${path}.md`])
}

/** All pages, in the order in which they are best read. */
export const GROUPS: Record<string, readonly Entry[]> = {
  Start: [
    ['Documentation', 'docs/README.md'],
    ['Overview', 'README.md'],
    ['Tutorial', 'docs/tutorial.md'],
    ['Choosing a limit', 'docs/choosing.md'],
    ['Comparison', 'docs/comparison.md'],
    ['Examples', 'docs/examples.md'],
  ],
  'The library': [
    ['In one page', 'docs/library.md'],
    ['The package', 'packages/slidegate/README.md'],
    ['Kinds of limits', 'docs/limits.md'],
    ['More than yes or no', 'docs/using.md'],
    ['Callers', 'docs/callers.md'],
    ['Servers', 'docs/http.md'],
    ['WebSockets', 'docs/websockets.md'],
    ['Outbound calls', 'docs/outbound.md'],
    ['Language models', 'docs/guides/language-models.md'],
    ['Without Node', 'docs/edge.md'],
  ],
  Frameworks: [
    ['Express', 'docs/guides/express.md'],
    ['Fastify', 'docs/guides/fastify.md'],
    ['Koa', 'docs/guides/koa.md'],
    ['Hono', 'docs/guides/hono.md'],
    ['NestJS', 'docs/guides/nestjs.md'],
    ['Next.js', 'docs/guides/nextjs.md'],
    ['Fetch API', 'docs/guides/fetch.md'],
    ['node:http', 'docs/guides/node-http.md'],
  ],
  'Moving here': [
    ['From what', 'docs/migrate/README.md'],
    ['express-rate-limit', 'docs/migrate/express-rate-limit.md'],
    ['@fastify/rate-limit', 'docs/migrate/fastify-rate-limit.md'],
    ['@nestjs/throttler', 'docs/migrate/nestjs-throttler.md'],
    ['rate-limiter-flexible', 'docs/migrate/rate-limiter-flexible.md'],
    ['@upstash/ratelimit', 'docs/migrate/upstash-ratelimit.md'],
  ],
  'The service': [
    ['The package', 'packages/server/README.md'],
    ['Configuration', 'docs/configuration.md'],
    ['HTTP API', 'docs/api.md'],
    ['Command line', 'docs/cli.md'],
    ['Gateways', 'docs/gateways.md'],
    ['Envoy', 'docs/envoy.md'],
    ["Envoy's protocol", 'packages/server/proto/README.md'],
    ['Client', 'docs/client.md'],
    ['Deploy', 'docs/deploy.md'],
    ['Operate', 'docs/operations.md'],
  ],
  'In production': [
    ['Checklist', 'docs/production.md'],
    ['Failures', 'docs/failures.md'],
    ['Errors', 'docs/errors.md'],
    ['The live page', 'docs/dashboard.md'],
    ['Metrics and traces', 'docs/metrics.md'],
    ['Alerts', 'docs/alerts.md'],
    ['Captures', 'docs/capture.md'],
    ['Security', 'SECURITY.md'],
    ['Bounds', 'docs/bounds.md'],
    ['What stands in Redis', 'docs/state.md'],
    ['Dependencies', 'docs/dependencies.md'],
    ['Versions', 'docs/versions.md'],
    ['Changelog', 'CHANGELOG.md'],
    ['of the library', 'packages/slidegate/CHANGELOG.md'],
    ['of the server', 'packages/server/CHANGELOG.md'],
  ],
  Reference: [['Import paths', 'docs/reference/README.md'], ...referencePages()],
  'Ideas and figures': [
    ['Why exact is cheap', 'docs/ideas/README.md'],
    ...pagesIn('docs/ideas'),
    ['Benchmarks', 'docs/benchmarks/README.md'],
    ['Notes on them', 'docs/benchmarks/notes.md'],
    ['The bench', 'bench/README.md'],
  ],
  'Worked examples': [
    ['Flash sale', 'examples/flash-sale/README.md'],
    ['GraphQL', 'examples/graphql/README.md'],
    ['LLM gateway', 'examples/llm-gateway/README.md'],
    ['NestJS', 'examples/nestjs/README.md'],
    ['@nestjs/throttler', 'examples/nest-throttler/README.md'],
    ['Next.js', 'examples/nextjs/README.md'],
    ['One-time passwords', 'examples/one-time-passwords/README.md'],
    ['Tenants', 'examples/tenants/README.md'],
    ['Third parties', 'examples/third-party/README.md'],
    ['WebSocket chat', 'examples/websocket-chat/README.md'],
  ],
  Contributing: [
    ['Architecture', 'ARCHITECTURE.md'],
    ['Contributing', 'CONTRIBUTING.md'],
    ['Prose lint', 'tools/prose/README.md'],
    ['Surviving mutants', 'packages/slidegate/test/mutants/typescript/survivors.md'],
    ['Decisions', 'docs/decisions/README.md'],
    ...pagesIn('docs/decisions'),
  ],
}

export const sidebar: DefaultTheme.SidebarItem[] = Object.entries(GROUPS).map(([text, entries], i) => ({
  text,
  // Without it the group is a button with a button in it.
  link: addressOf(entries[0]![1]),
  collapsed: i > 0,
  items: entries.map(([text, file]) => ({ text, link: addressOf(file) })),
}))

export const nav: DefaultTheme.NavItem[] = [
  { text: 'Tutorial', link: addressOf('docs/tutorial.md') },
  { text: 'Library', link: addressOf('docs/library.md') },
  { text: 'Service', link: addressOf('docs/configuration.md') },
  { text: 'Production', link: addressOf('docs/production.md') },
  { text: 'Reference', link: addressOf('docs/reference/README.md') },
]
