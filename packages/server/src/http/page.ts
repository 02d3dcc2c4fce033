// Serves the dashboard's files.

import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { Type } from '../json-schema.ts'
import { PACKAGE } from '../package-folder.ts'
import type { App } from './context.ts'
import { acceptsGzip } from './encoding.ts'

/** The built dashboard. */
const ROOT = fileURLToPath(new URL('page', PACKAGE))

const gzipped = promisify<Buffer, Buffer>(gzip)

const YEAR_MS = 365 * 86_400_000

/** Blocks injected code. The page has no inline code and loads nothing from other origins. */
const HEADERS = {
  'content-security-policy': [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self'",
    "connect-src 'self'",
    "worker-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; '),
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'permissions-policy': 'camera=(), geolocation=(), microphone=()',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  vary: 'Accept-Encoding',
}

const NOT_BUILT = "The dashboard isn't built. Run npm run build. For the API, see /openapi.json.\n"

/** Serves the dashboard. Its files aren't secret and need no token, unlike the data that it requests. */
export function pageRoutes(app: App, root: string = ROOT): void {
  const schema = {
    tags: ['service'],
    summary: 'Open the dashboard',
    response: {
      200: { description: 'HTML.', content: { 'text/html': { schema: Type.String() } } },
      404: {
        description: "The dashboard isn't built.",
        content: { 'text/plain': { schema: Type.String() } },
      },
    },
  }
  const compressed = new Map<string, Buffer>()
  const isSent = async (request: FastifyRequest, reply: FastifyReply, path: string, caching: string) => {
    // Loaded on demand, because most services never serve the dashboard.
    const { default: send } = await import('@fastify/send')
    const found = await send(request.raw, path, { root, index: false, cacheControl: false })
    if (found.type !== 'file') return false
    reply.code(found.statusCode).headers({ ...found.headers, ...HEADERS, 'cache-control': caching })
    // Compressed once, because the names of these files change with their content.
    if (found.statusCode === 200 && path.startsWith('assets/') && acceptsGzip(request.headers)) {
      found.stream.destroy()
      const body = compressed.get(path) ?? (await gzipped(await readFile(join(root, path))))
      compressed.set(path, body)
      reply.headers({ 'content-encoding': 'gzip', 'content-length': body.length }).send(body)
    } else {
      reply.send(found.stream)
    }
    return true
  }
  app.get('/', { schema }, async (request, reply) => {
    // Never cached, because it links to the other files, whose names change with their content.
    if (await isSent(request, reply, 'index.html', 'no-cache')) return reply
    return reply
      .code(404)
      .type('text/plain; charset=utf-8')
      .send(NOT_BUILT as never)
  })
  const hidden = { schema: { hide: true } }
  app.get('/icon.svg', hidden, async (request, reply) => {
    if (await isSent(request, reply, 'icon.svg', 'no-cache')) return reply
    return reply.callNotFound()
  })
  app.get<{ Params: { file: string } }>('/assets/:file', hidden, async (request, reply) => {
    const { file } = request.params
    const isName = /^\w[\w.-]*$/.test(file)
    const forEver = `public, max-age=${YEAR_MS / 1000}, immutable`
    if (isName && (await isSent(request, reply, `assets/${file}`, forEver))) return reply
    return reply.callNotFound()
  })
}
