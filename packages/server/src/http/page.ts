// Serves the files of the live page.

import { fileURLToPath } from 'node:url'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { Type } from '../json-schema.ts'
import type { App } from './context.ts'

/** Built by packages/dashboard; as far from here as from where this is when it was built. */
const ROOT = fileURLToPath(new URL('../../page', import.meta.url))

const YEAR_MS = 365 * 86_400_000

/** There is nothing inline in the page, and nothing from elsewhere: whatever else gets into it does nothing. */
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
}

const NOT_BUILT =
  'The live page was not built: npm run build makes it. The API is described at /openapi.json.\n'

/** The live page: files, without a token, since nothing in them is secret. What the page asks for needs one. */
export function pageRoutes(app: App, root: string = ROOT): void {
  const schema = {
    tags: ['service'],
    summary: 'The live page',
    response: {
      200: { description: 'HTML.', content: { 'text/html': { schema: Type.String() } } },
      404: { description: 'It was not built.', content: { 'text/plain': { schema: Type.String() } } },
    },
  }
  const isSent = async (request: FastifyRequest, reply: FastifyReply, path: string, caching: string) => {
    // Only who looks at the page needs it.
    const { default: send } = await import('@fastify/send')
    const found = await send(request.raw, path, { root, index: false, cacheControl: false })
    if (found.type !== 'file') return false
    reply.code(found.statusCode).headers({ ...found.headers, ...HEADERS, 'cache-control': caching })
    reply.send(found.stream)
    return true
  }
  app.get('/', { schema }, async (request, reply) => {
    // It names the other files, whose names are others when they have changed.
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
