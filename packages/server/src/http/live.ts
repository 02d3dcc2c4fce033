// Routes for the dashboard.

import type { Caller } from '../service/gatekeeper.ts'
import { ServiceError } from '../service/service-error.ts'
import {
  CheckBody,
  Checked,
  Configuration,
  Events,
  History,
  HistoryQuery,
  Overview,
  WhoAmI,
} from './admin-schemas.ts'
import type { App, Context } from './context.ts'
import { mustSee, namesFor, readerNow, sendEvents } from './readers.ts'

const read = { role: 'read' } as const
const tags = ['admin']

/** Routes that only the dashboard needs. */
export function liveRoutes(app: App, context: Context): void {
  const { service, admin, configuration } = context
  app.get(
    '/v1/admin/whoami',
    {
      config: { role: 'check' },
      schema: { tags, summary: 'Identify the caller', response: { 200: WhoAmI } },
    },
    ({ caller }) => {
      const { name, role, limiters } = caller
      const hasTokens = (service.config.auth?.tokens ?? []).length > 0
      return { name, role, limiters: limiters === undefined ? null : [...limiters], hasTokens }
    },
  )

  app.get(
    '/v1/admin/overview',
    {
      config: read,
      schema: {
        tags,
        summary: 'Get an overview of the service',
        description: 'Covers the last full second, across all instances that share the store.',
        response: { 200: Overview },
      },
    },
    ({ caller }) => admin.live.overview((name) => caller.may(name)),
  )

  app.get(
    '/v1/admin/live',
    {
      config: read,
      schema: {
        tags,
        summary: 'Stream overviews',
        description: 'Sends an `overview` each second, as a server-sent event.',
        response: { 200: Events },
      },
    },
    async ({ raw }, reply) => {
      const may = () => {
        const reader = readerNow(context, raw)
        return (name: string) => reader.may(name)
      }
      return sendEvents(raw, reply, admin.live.open(may))
    },
  )

  app.get(
    '/v1/admin/history',
    {
      config: read,
      schema: {
        tags,
        summary: 'Get per-second counts for the last five minutes',
        description: 'Covers all instances that share the store, and all limiters unless you name one.',
        querystring: HistoryQuery,
        response: { 200: History },
      },
    },
    async ({ caller, query: { limiter } }) => {
      if (limiter === undefined) return admin.live.history(namesFor(context, caller))
      mustSee(context, caller, limiter)
      return admin.live.history([limiter])
    },
  )

  app.get(
    '/v1/admin/configuration',
    {
      config: read,
      schema: {
        tags,
        summary: 'Get the configuration',
        description:
          "Returns the configuration in force, and how the file differs from it. Secrets are replaced by `***`, and environment variables aren't expanded.",
        response: { 200: Configuration },
      },
    },
    ({ caller }) => {
      mustSeeAll(caller)
      return { ...configuration.status(), shadowSettings: service.shadowSettings }
    },
  )

  app.post(
    '/v1/admin/configuration/check',
    {
      config: { role: 'admin' },
      schema: {
        tags,
        summary: 'Check a configuration',
        description:
          'Returns the problems in the given configuration, or how it differs from the one in force. Changes nothing.',
        body: CheckBody,
        response: { 200: Checked },
      },
    },
    ({ caller, body }) => {
      mustSeeAll(caller)
      return configuration.check(body.text)
    },
  )
}

/** Rejects callers that may not see all limiters. @throws {ServiceError} `forbidden` */
function mustSeeAll(caller: Caller): void {
  if (caller.limiters === undefined) return
  throw new ServiceError(
    403,
    'forbidden',
    `${caller.name} can't read the configuration: this requires access to all limiters`,
  )
}
