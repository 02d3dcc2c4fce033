// Routes for the history of limiters and keys, and for watching keys.

import { keysOf } from '../admin/keys.ts'
import type { Service } from '../service/service.ts'
import { ServiceError } from '../service/service-error.ts'
import { CountSeries, Done, NameParams, SeriesQuery, WatchBody } from './admin-schemas.ts'
import type { App, Context } from './context.ts'
import { mustSee } from './readers.ts'
import { keyIn, limiterFor } from './requests.ts'

const tags = ['admin']

export function historyRoutes(app: App, context: Context): void {
  const { service, admin } = context
  app.get(
    '/v1/admin/limiters/:name/history',
    {
      config: { role: 'read' },
      schema: {
        tags,
        summary: 'Get the counts for a limiter or a key over an hour or a week',
        description:
          'Covers all instances that share the store. Only watched keys, blocked keys, and the keys with the most requests or denials are kept. Minutes and hours appear 10 seconds after they end.',
        params: NameParams,
        querystring: SeriesQuery,
        response: { 200: CountSeries },
      },
    },
    async ({ caller, params: { name }, query: { range = '1h', key, dimension } }) => {
      mustSee(context, caller, name)
      if (key === undefined) return admin.history.series(name, range)
      if (service.has(name)) checkDimension(service, name, dimension)
      return admin.history.series(name, range, { key, dimension })
    },
  )

  app.post(
    '/v1/admin/watch',
    {
      config: { role: 'admin' },
      schema: {
        tags,
        summary: 'Watch a key, or stop watching it',
        description:
          "A watched key appears in its limiter's history, however rare its requests are. A limiter has up to 8 watched keys; a ninth replaces the one whose watch ends first. Setting an override also watches the key, unless the limiter already has 8. Takes effect within a minute.",
        body: WatchBody,
        response: { 200: Done },
      },
    },
    async ({ body, caller }) => {
      const { limiter, watch } = body
      const key = keyIn(body)
      limiterFor(service, caller, limiter)
      const keys = keysOf(key)
      for (const { dimension } of keys) checkDimension(service, limiter, dimension)
      const action = { who: caller.name, what: watch ? 'watch' : 'stop watching', limiter, key }
      await admin.audit.act(action, async () => {
        for (const each of keys) await admin.history.watchList.watch(limiter, each, watch)
      })
      return { done: true as const }
    },
  )
}

/** @throws {ServiceError} `invalid_key` */
function checkDimension(service: Service, limiter: string, dimension: string | undefined): void {
  const known = Array.from(service.get(limiter).declared.usual.keys())
  if (known.includes(dimension ?? '')) return
  const expected = known.includes('') ? 'none' : `one of ${known.join(', ')}`
  const given = dimension === undefined ? 'no dimension' : `the dimension ${JSON.stringify(dimension)}`
  throw new ServiceError(400, 'invalid_key', `the key has ${given}; ${limiter} expects ${expected}`)
}
