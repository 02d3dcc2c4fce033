// Routes that show limiters, keys, decisions, the audit log and captures.

import { declarationOf, type Limit } from 'slidegate'
import type { AuditEntry } from '../admin/api-types.ts'
import { Type } from '../json-schema.ts'
import type { ActiveLimiter } from '../service/service.ts'
import { ServiceError } from '../service/service-error.ts'
import {
  AuditAnswer,
  AuditQuery,
  Events,
  Limiters,
  LimitsAnswer,
  NameParams,
  TailQuery,
  TopAnswer,
  TopQuery,
  UsageAnswer,
} from './admin-schemas.ts'
import type { App, Context } from './context.ts'
import { mustSee, namesFor, readerNow, sendEvents } from './readers.ts'
import { closed, LimiterName } from './schemas.ts'

const read = { role: 'read' } as const
const tags = ['admin']

/** Routes that inspect the running service. */
export function viewRoutes(app: App, context: Context): void {
  const { service, admin } = context
  app.get(
    '/v1/admin/limiters',
    {
      config: read,
      schema: { tags, summary: 'List limiters and their state', response: { 200: Limiters } },
    },
    async ({ caller }) => {
      const mine = service.active().filter(({ declared }) => caller.may(declared.name))
      // Sends one query for all limiters, because each query goes to all instances.
      const states = await admin.statesOf(mine.map(({ declared }) => declared.name))
      const limiters = mine.map((active) => ({
        ...declaredBody(active),
        shadowSettings: service.shadowSettings[active.declared.name] ?? {},
        ...states.get(active.declared.name)!,
      }))
      return { limiters }
    },
  )

  app.get(
    '/v1/admin/limiters/:name/usage',
    {
      config: read,
      schema: {
        tags,
        summary: "Get a limiter's decision rates",
        description: 'Covers the last 1, 10, 60 and 300 full seconds.',
        params: NameParams,
        response: { 200: UsageAnswer },
      },
    },
    async ({ caller, params }) => {
      mustSee(context, caller, params.name)
      return { limiter: params.name, usage: await admin.usageOf(params.name) }
    },
  )

  app.get(
    '/v1/admin/limiters/:name/top',
    {
      config: read,
      schema: {
        tags,
        summary: 'List the keys with the most requests or denials',
        description:
          'Covers at least the last 2.5 minutes, and at most the last 5. Counts are estimates: the real number is between `count - error` and `count`.',
        params: NameParams,
        querystring: TopQuery,
        response: { 200: TopAnswer },
      },
    },
    async ({ caller, params, query }) => {
      const { by = 'requests', count = 10 } = query
      mustSee(context, caller, params.name)
      return { limiter: params.name, by, ...(await admin.topOf(params.name, by, count)) }
    },
  )

  app.get(
    '/v1/admin/limiters/:name/limits',
    {
      config: read,
      schema: {
        tags,
        summary: 'Get statistics for each limit',
        description: 'Covers all instances since they started.',
        params: NameParams,
        response: { 200: LimitsAnswer },
      },
    },
    async ({ caller, params }) => {
      mustSee(context, caller, params.name)
      const limits = (await admin.limitsOf(params.name)).map(({ utilization: { counts, sum }, ...rest }) => {
        const requests = counts.reduce((all, count) => all + count, 0)
        return { ...rest, requests, meanUtilization: requests === 0 ? null : sum / requests }
      })
      return { limiter: params.name, limits }
    },
  )

  app.get(
    '/v1/admin/tail',
    {
      config: read,
      schema: {
        tags,
        summary: 'Stream decisions',
        description:
          'Sends decisions as they happen, as server-sent events: `decision`, and `lost` with the number of dropped decisions. Slow readers lose decisions; requests never wait for them.',
        querystring: TailQuery,
        response: { 200: Events },
      },
    },
    async ({ caller, query, raw }, reply) => {
      const { limiter, key, denied } = query
      if (limiter !== undefined) mustSee(context, caller, limiter)
      const limiters = () => {
        const names = namesFor(context, readerNow(context, raw))
        return limiter === undefined ? names : names.filter((name) => name === limiter)
      }
      return sendEvents(
        raw,
        reply,
        admin.tail.open(() => ({ limiters: limiters(), key, denied })),
      )
    },
  )

  app.get(
    '/v1/admin/audit',
    {
      config: read,
      schema: {
        tags,
        summary: 'List changes by operators, and automatic bans',
        description: 'Returns the audit log, newest first. The `who` of an automatic ban is `rule`.',
        querystring: AuditQuery,
        response: { 200: AuditAnswer },
      },
    },
    async ({ caller, query }) => {
      const may = ({ limiter }: AuditEntry) => limiter === undefined || caller.may(limiter)
      const { count = 50 } = query
      const [changes, bans] = await Promise.all([
        admin.audit.list(count, may),
        admin.banRecorder.past(count, may),
      ])
      return { entries: [...changes, ...bans].sort((a, b) => b.atMs - a.atMs).slice(0, count) }
    },
  )

  // Endless streams would delay the shutdown.
  app.addHook('preClose', (done) => {
    admin.closeStreams()
    done()
  })
}

function declaredBody(active: ActiveLimiter) {
  const { name, config } = active.declared
  // hashKeys is a secret.
  const { hashKeys, ...shown } = config
  return { name, config: shown, hashesKeys: hashKeys !== undefined, limits: limitBodies(active) }
}

/** Returns the limits for keys without a plan or an override. */
export function limitBodies({ declared }: ActiveLimiter): object[] {
  const bodyOf = (dimension: string, limit: Limit) => ({
    ...(dimension !== '' && { dimension }),
    ...declarationOf(limit),
  })
  return Array.from(declared.usual).flatMap(([dimension, limits]) =>
    limits.map((limit) => bodyOf(dimension, limit)),
  )
}

const MAX_COUNT = 100_000
const DEFAULT_COUNT = 10_000

const Query = closed({
  limiter: Type.Optional(LimiterName),
  count: Type.Optional(
    Type.Integer({ minimum: 1, maximum: MAX_COUNT, description: `Default: ${DEFAULT_COUNT}.` }),
  ),
})

const Lines = {
  description: 'One line of JSON per captured request.',
  content: { 'application/x-ndjson': { schema: { type: 'string' } } },
} as const

/** Serves captured requests, for a replay. */
export function captureRoutes(app: App, context: Context): void {
  const { processes, capture } = context
  let isReading = false
  app.get(
    '/v1/admin/capture',
    {
      config: { role: 'read' },
      schema: {
        tags: ['admin'],
        summary: 'Download captured requests',
        description: 'Returns the newest captured requests in chronological order, for `slidegate replay`.',
        querystring: Query,
        response: { 200: Lines },
      },
    },
    async ({ caller, query }, reply) => {
      const { limiter, count = DEFAULT_COUNT } = query
      if (limiter !== undefined) mustSee(context, caller, limiter)
      if (isReading)
        throw new ServiceError(
          429,
          'too_many_readers',
          'another client is downloading the captured requests; retry later',
        )
      isReading = true
      try {
        await processes.ask('captured')
        const lines = await capture.newest(
          count,
          (name) => (limiter === undefined || name === limiter) && caller.may(name),
        )
        if (lines === undefined)
          throw new ServiceError(
            404,
            'no_capture',
            'no requests are captured; set capture in the configuration',
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
