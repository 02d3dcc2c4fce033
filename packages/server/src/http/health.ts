import type { App } from './app.ts'
import type { Context } from './context.ts'

export function healthRoutes(app: App, { readiness, metrics, peers }: Context): void {
  app.get('/healthz', () => ({ status: 'ok' }))
  app.get('/readyz', async (_request, reply) => {
    const { ready, reasons } = await readiness.state()
    const config = readiness.configProblem === undefined ? { valid: true } : { valid: false }
    reply.code(ready ? 200 : 503)
    return { ready, reasons, config }
  })
  app.get('/metrics', { config: { role: 'read' } }, async (_request, reply) => {
    reply.type(metrics.registry.contentType)
    return metrics.text(peers)
  })
  app.get('/openapi.json', () => app.swagger())
}
