import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { DefaultTheme } from 'vitepress'
import { addressOf } from './addresses.ts'
import { pages, prose, ROOT } from './markdown.ts'

/** The title of a page in the sidebar, and its file. */
type Entry = readonly [text: string, file: string]

/** The pages of a folder, by their titles. */
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

/** All pages, in reading order. */
export const GROUPS: Record<string, readonly Entry[]> = {
  Learn: [
    ['Home', 'docs/home.md'],
    ['All pages', 'docs/README.md'],
    ['README', 'README.md'],
    ['Tutorial', 'docs/tutorial.md'],
    ['Choosing a limit', 'docs/choosing.md'],
    ['The library in one page', 'docs/library.md'],
    ['Comparison', 'docs/comparison.md'],
    ['Coverage', 'docs/covers.md'],
    ['Examples', 'docs/examples.md'],
    ['Calls per client', 'examples/client-calls/README.md'],
    ['Database', 'examples/database/README.md'],
    ['Flash sale', 'examples/flash-sale/README.md'],
    ['GraphQL', 'examples/graphql/README.md'],
    ['LLM gateway', 'examples/llm-gateway/README.md'],
    ['NestJS example', 'examples/nestjs/README.md'],
    ['@nestjs/throttler storage', 'examples/nest-throttler/README.md'],
    ['Next.js example', 'examples/nextjs/README.md'],
    ['One-time passwords', 'examples/one-time-passwords/README.md'],
    ['Tenants', 'examples/tenants/README.md'],
    ['Third parties', 'examples/third-party/README.md'],
    ['WebSocket chat', 'examples/websocket-chat/README.md'],
  ],
  'Guides: programs': [
    ['Middleware', 'docs/http.md'],
    ['Express', 'docs/guides/express.md'],
    ['Fastify', 'docs/guides/fastify.md'],
    ['Koa', 'docs/guides/koa.md'],
    ['Hono', 'docs/guides/hono.md'],
    ['NestJS', 'docs/guides/nestjs.md'],
    ['Next.js', 'docs/guides/nextjs.md'],
    ['Fetch API', 'docs/guides/fetch.md'],
    ['node:http', 'docs/guides/node-http.md'],
    ['WebSockets', 'docs/websockets.md'],
    ['Callers and keys', 'docs/callers.md'],
    ['Plans, bans, waiting', 'docs/using.md'],
    ['Login protection', 'docs/guides/login.md'],
    ['Outbound calls', 'docs/outbound.md'],
    ['Language models', 'docs/guides/language-models.md'],
    ['Edge runtimes', 'docs/edge.md'],
  ],
  'Guides: operations': [
    ['Production', 'docs/production.md'],
    ['Managed Redis', 'docs/managed-redis.md'],
    ['When the store fails', 'docs/failures.md'],
    ['Running the service', 'docs/deploy.md'],
    ['Gateways', 'docs/gateways.md'],
    ['Envoy', 'docs/envoy.md'],
    ['A service as the store', 'docs/client.md'],
    ['Operations', 'docs/operations.md'],
    ['The dashboard', 'docs/dashboard.md'],
    ['Alerts', 'docs/alerts.md'],
    ['Captures and decision log', 'docs/capture.md'],
    ['Shipping logs and metrics', 'docs/shipping.md'],
    ['Security', 'SECURITY.md'],
  ],
  'Guides: migration': [
    ['Overview', 'docs/migrate/README.md'],
    ['express-rate-limit', 'docs/migrate/express-rate-limit.md'],
    ['@fastify/rate-limit', 'docs/migrate/fastify-rate-limit.md'],
    ['@nestjs/throttler', 'docs/migrate/nestjs-throttler.md'],
    ['rate-limiter-flexible', 'docs/migrate/rate-limiter-flexible.md'],
    ['@upstash/ratelimit', 'docs/migrate/upstash-ratelimit.md'],
  ],
  'Kinds of limits': [['All kinds', 'docs/limits/README.md'], ...pagesIn('docs/limits')],
  Reference: [
    ['Import paths', 'docs/reference/README.md'],
    ['Errors', 'docs/errors.md'],
    ['Configuration', 'docs/configuration.md'],
    ['Command line', 'docs/cli.md'],
    ['HTTP API', 'docs/api.md'],
    ['Metrics and traces', 'docs/metrics.md'],
    ['Bounds', 'docs/bounds.md'],
    ['Stored state', 'docs/state.md'],
    ['Versions', 'docs/versions.md'],
    ['Dependencies', 'docs/dependencies.md'],
    ['Changelog', 'CHANGELOG.md'],
    ['Changelog of the library', 'packages/slidegate/CHANGELOG.md'],
    ['Changelog of the service', 'packages/server/CHANGELOG.md'],
    ['The package slidegate', 'packages/slidegate/README.md'],
    ['The package slidegate-server', 'packages/server/README.md'],
    ["Envoy's protocol", 'packages/server/proto/README.md'],
    ...referencePages(),
  ],
  Explanations: [
    ['Why exact is cheap', 'docs/ideas/README.md'],
    ...pagesIn('docs/ideas'),
    ['Benchmarks', 'docs/benchmarks/README.md'],
    ['Missed targets', 'docs/benchmarks/notes.md'],
    ['How benchmarks run', 'bench/README.md'],
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
  { text: 'Guides', link: addressOf('docs/http.md') },
  { text: 'Kinds of limits', link: addressOf('docs/limits/README.md') },
  { text: 'Production', link: addressOf('docs/production.md') },
  { text: 'Reference', link: addressOf('docs/reference/README.md') },
]
