import Type from 'typebox'
import { ServiceError } from '../service/service-error.ts'
import type { App, Context } from './context.ts'
import { mustSee } from './readers.ts'
import { closed, LimiterName } from './schemas.ts'

const MAX_COUNT = 100_000
const DEFAULT_COUNT = 10_000

const Query = closed({
  limiter: Type.Optional(LimiterName),
  count: Type.Optional(
    Type.Integer({ minimum: 1, maximum: MAX_COUNT, description: `Default: ${DEFAULT_COUNT}.` }),
  ),
})

const Lines = {
  description: 'Captured requests, a line of JSON each.',
  content: { 'application/x-ndjson': { schema: { type: 'string' } } },
} as const

/** The sample of what was decided, for a replay. */
export function captureRoutes(app: App, context: Context): void {
  const { peers, capture } = context
  let isReading = false
  app.get(
    '/v1/admin/capture',
    {
      config: { role: 'read' },
      schema: {
        tags: ['admin'],
        summary: 'The captured requests',
        description: 'The newest of those that are kept, the oldest of them first, for slidegate replay.',
        querystring: Query,
        response: { 200: Lines },
      },
    },
    async ({ caller, query }, reply) => {
      const { limiter, count = DEFAULT_COUNT } = query
      if (limiter !== undefined) mustSee(context, caller, limiter)
      if (isReading)
        throw new ServiceError(429, 'too_many_readers', 'somebody reads the captured requests now')
      isReading = true
      try {
        await peers.ask('captured')
        const lines = await capture.newest(
          count,
          (name) => (limiter === undefined || name === limiter) && caller.may(name),
        )
        if (lines === undefined)
          throw new ServiceError(
            404,
            'no_capture',
            'no requests are captured: the configuration has no capture',
          )
        const text = lines.map((line) => `${line}\n`).join('')
        reply.header('cache-control', 'no-store')
        return reply.type('application/x-ndjson').send(text as never)
      } finally {
        isReading = false
      }
    },
  )
}
