// Routes of the live page.

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

/** What the live page asks, besides what every operator does. */
export function liveRoutes(app: App, context: Context): void {
  const { service, admin, configuration } = context
  app.get(
    '/v1/admin/whoami',
    { config: { role: 'check' }, schema: { tags, summary: 'Whose token it is', response: { 200: WhoAmI } } },
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
        summary: 'How the service is',
        description: 'The last whole second, of all instances on the same store.',
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
        summary: 'Follow how the service is',
        description: 'Server-sent events: overview, each second.',
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
        summary: 'The last five minutes, by the second',
        description: 'Of all instances on the same store, and of all limiters unless one is named.',
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
        summary: 'The configuration: in force, and in its file',
        description: 'Without secrets: in their place stands ***, and variables stand as they are written.',
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
        summary: 'What a configuration would change',
        description:
          'What is wrong with it, or how it differs from what is in force. Nothing is put in force.',
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

/** The configuration has limiters of others in it. @throws {ServiceError} `forbidden` */
function mustSeeAll(caller: Caller): void {
  if (caller.limiters === undefined) return
  throw new ServiceError(
    403,
    'forbidden',
    `${caller.name} may not see the configuration: there are limiters of others`,
  )
}
