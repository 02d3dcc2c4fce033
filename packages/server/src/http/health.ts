// Health, readiness, metrics.

import { promisify } from 'node:util'
import * as zlib from 'node:zlib'
import { Type } from '../json-schema.ts'
import type { App, Context } from './context.ts'
import { acceptsGzip } from './encoding.ts'
import { closed, OnStoreError } from './schemas.ts'

const tags = ['service']

const gzip = promisify(zlib.gzip)

const ReadinessSchema = closed({
  ready: Type.Boolean(),
  degraded: Type.Boolean({
    description: 'Whether the store is down, in which case limiters follow their `onStoreError`.',
  }),
  reasons: Type.Array(Type.String(), { description: "Why the service isn't ready or is degraded." }),
  limiters: Type.Optional(
    Type.Record(Type.String(), OnStoreError, {
      description:
        'If degraded: the `onStoreError` of each limiter that the caller may read. Requires the role `read`.',
    }),
  ),
  config: closed({
    valid: Type.Boolean({ description: 'Whether the configuration file is valid and in force.' }),
  }),
})

export function healthRoutes(
  app: App,
  { readiness, metrics, processes, service, gatekeeper }: Context,
): void {
  app.get(
    '/healthz',
    {
      schema: {
        tags,
        summary: 'Check liveness',
        response: { 200: closed({ status: Type.Literal('ok') }, { description: 'The process is running.' }) },
      },
    },
    () => ({ status: 'ok' as const }),
  )
  const readyz = {
    tags,
    summary: 'Check readiness',
    response: {
      200: { ...ReadinessSchema, description: 'Ready for requests.' },
      503: {
        ...ReadinessSchema,
        description: 'Not ready: the service is draining or, with `readiness: store`, its store is down.',
      },
    },
  }
  const policiesFor = (authorization: string | undefined) => {
    const reader = gatekeeper.readerOf(authorization)
    return Object.fromEntries(
      service
        .active()
        .filter(({ declared }) => reader?.may(declared.name))
        .map(({ declared: { name, config } }) => [name, config.onStoreError ?? 'throw'] as const),
    )
  }
  app.get('/readyz', { schema: readyz }, async ({ headers }, reply) => {
    const { ready, degraded, reasons } = await readiness.state()
    const config = { valid: readiness.configProblem === undefined }
    reply.code(ready ? 200 : 503)
    return {
      ...{ ready, degraded, reasons: [...reasons] },
      ...(degraded && { limiters: policiesFor(headers.authorization) }),
      config,
    }
  })
  const metricsSchema = {
    tags,
    summary: 'Get Prometheus metrics',
    response: {
      200: {
        description: 'Metrics in the Prometheus text format.',
        content: { 'text/plain': { schema: Type.String() } },
      },
    },
  }
  app.get(
    '/metrics',
    { config: { role: 'read', isOpen: true }, schema: metricsSchema },
    async ({ headers }, reply) => {
      const text = await metrics.text(processes)
      reply.type(metrics.registry.contentType).header('vary', 'Accept-Encoding')
      if (!acceptsGzip(headers)) return text
      reply.header('content-encoding', 'gzip')
      return (await gzip(text)) as never
    },
  )
  let description: string | undefined
  const openapiSchema = {
    tags,
    summary: 'Get this API description',
    response: { 200: Type.Unsafe<string>({ type: 'object', description: 'OpenAPI 3.1.' }) },
  }
  app.get('/openapi.json', { schema: openapiSchema }, (_request, reply) => {
    description ??= JSON.stringify(app.swagger())
    reply.type('application/json; charset=utf-8')
    return description
  })
}
