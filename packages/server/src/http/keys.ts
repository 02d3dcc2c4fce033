// Routes that find keys: banned and blocked keys, and one key in all limiters.

import { BansAnswer, BansQuery, KeysAnswer, KeysQuery } from './admin-schemas.ts'
import type { App, Context } from './context.ts'
import { mustSee } from './readers.ts'

const read = { role: 'read' } as const
const tags = ['admin']

export function keyRoutes(app: App, context: Context): void {
  const { service, admin } = context
  app.get(
    '/v1/admin/bans',
    {
      config: read,
      schema: {
        tags,
        summary: 'List banned and blocked keys',
        description:
          'Lists active bans that began in this service, and active blocks that were set through it. Sorted by end time, latest first.',
        querystring: BansQuery,
        response: { 200: BansAnswer },
      },
    },
    async ({ caller, query: { limiter, count = 100 } }) => {
      if (limiter !== undefined) mustSee(context, caller, limiter)
      return admin.bans.list((name) => caller.may(name) && (limiter === undefined || name === limiter), count)
    },
  )

  app.get(
    '/v1/admin/keys',
    {
      config: read,
      schema: {
        tags,
        summary: 'Find a key in all limiters',
        description:
          'Lists the limiters and dimensions in which the key has used a limit, is banned or blocked, has an override, or was recently denied. Charges nothing.',
        querystring: KeysQuery,
        response: { 200: KeysAnswer },
      },
    },
    ({ caller, query: { key } }) => {
      const limiters = service.active().filter(({ declared }) => caller.may(declared.name))
      return admin.find(limiters, key)
    },
  )
}
