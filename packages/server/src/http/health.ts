import Type from 'typebox'
import type { App } from './app.ts'
import type { Context } from './context.ts'
import { closed } from './schemas.ts'

const tags = ['service']

const ReadinessSchema = closed({
  ready: Type.Boolean(),
  reasons: Type.Array(Type.String(), { description: 'Why no requests should be sent here.' }),
  config: closed({
    valid: Type.Boolean({ description: 'Whether the configuration as it stands in the file is in force.' }),
  }),
})

export function healthRoutes(app: App, { readiness, metrics, peers }: Context): void {
  app.get(
    '/healthz',
    {
      schema: {
        tags,
        summary: 'Whether the process lives',
        response: { 200: closed({ status: Type.Literal('ok') }, { description: 'It does.' }) },
      },
    },
    () => ({ status: 'ok' as const }),
  )
  const readyz = {
    tags,
    summary: 'Whether requests should be sent here',
    response: {
      200: { ...ReadinessSchema, description: 'They should.' },
      503: { ...ReadinessSchema, description: 'They should not.' },
    },
  }
  app.get('/readyz', { schema: readyz }, async (_request, reply) => {
    const { ready, reasons } = await readiness.state()
    const config = readiness.configProblem === undefined ? { valid: true } : { valid: false }
    reply.code(ready ? 200 : 503)
    return { ready, reasons: [...reasons], config }
  })
  const metricsSchema = {
    tags,
    summary: 'What was counted, for Prometheus',
    response: {
      200: { description: 'The text format.', content: { 'text/plain': { schema: Type.String() } } },
    },
  }
  app.get('/metrics', { config: { role: 'read' }, schema: metricsSchema }, async (_request, reply) => {
    reply.type(metrics.registry.contentType)
    return metrics.text(peers)
  })
  let description: string | undefined
  const openapiSchema = {
    tags,
    summary: 'This description',
    response: { 200: Type.Unsafe<string>({ type: 'object', description: 'OpenAPI 3.1.' }) },
  }
  app.get('/openapi.json', { schema: openapiSchema }, (_request, reply) => {
    description ??= JSON.stringify(app.swagger())
    reply.type('application/json; charset=utf-8')
    return description
  })
}
