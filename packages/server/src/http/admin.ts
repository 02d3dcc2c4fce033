import { type AnyKey, declarationOf, type Limit, limitOf, type OverrideOptions } from 'slidegate'
import type { AuditEntry } from '../admin/overview.ts'
import { ALL } from '../admin/steering.ts'
import type { Caller } from '../service/gatekeeper.ts'
import type { ActiveLimiter } from '../service/service.ts'
import { ServiceError } from '../service/service-error.ts'
import {
  AuditAnswer,
  AuditQuery,
  BanBody,
  Deleted,
  Done,
  DrainBody,
  Drained,
  Events,
  KeyBody,
  Limiters,
  LimitsAnswer,
  NameParams,
  OverrideBody,
  OverrideKeyBody,
  OverridesAnswer,
  OverridesQuery,
  ShadowBody,
  Shadowed,
  TailQuery,
  TopAnswer,
  TopQuery,
  UsageAnswer,
} from './admin-schemas.ts'
import type { App } from './app.ts'
import type { Context } from './context.ts'
import { limiterFor } from './requests.ts'

const read = { role: 'read' } as const
const change = { role: 'admin' } as const
const tags = ['admin']

type Duration = Exclude<OverrideOptions['ttl'], undefined>

/** To look at the service while it runs, and to change it. Every change is in the audit. */
export function adminRoutes(app: App, context: Context): void {
  lookingRoutes(app, context)
  keyRoutes(app, context)
  overrideRoutes(app, context)
  steeringRoutes(app, context)
}

function lookingRoutes(app: App, { service, gatekeeper, admin }: Context): void {
  /** Domains of Envoy are no limiters of the configuration, and yet there is something to be seen of them. */
  const seen = (caller: Caller, name: string): void => {
    caller.mustReach(name)
    if (!admin.seen().includes(name)) service.get(name)
  }

  app.get(
    '/v1/admin/limiters',
    {
      config: read,
      schema: { tags, summary: 'List limiters, and how they are', response: { 200: Limiters } },
    },
    async ({ caller }) => {
      const mine = service.active().filter(({ declared }) => caller.may(declared.name))
      // One question for all: each goes to all instances.
      const states = await admin.statesOf(mine.map(({ declared }) => declared.name))
      const limiters = mine.map((active) => ({
        ...declaredTold(active),
        shadowByWord: service.shadowings[active.declared.name] ?? {},
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
        summary: 'How much is decided',
        description: 'What was decided in the last whole second, 10 seconds, minute and 5 minutes.',
        params: NameParams,
        response: { 200: UsageAnswer },
      },
    },
    async ({ caller, params }) => {
      seen(caller, params.name)
      return { limiter: params.name, usage: await admin.usageOf(params.name) }
    },
  )

  app.get(
    '/v1/admin/limiters/:name/top',
    {
      config: read,
      schema: {
        tags,
        summary: 'Who asks most, or is denied most',
        description:
          'The keys with the most requests or denials of the last 2.5 to 5 minutes, counted in bounded memory: each came count times at most, and count - error at least.',
        params: NameParams,
        querystring: TopQuery,
        response: { 200: TopAnswer },
      },
    },
    async ({ caller, params, query }) => {
      const { by = 'requests', count = 10 } = query
      seen(caller, params.name)
      return { limiter: params.name, by, ...(await admin.topOf(params.name, by, count)) }
    },
  )

  app.get(
    '/v1/admin/limiters/:name/limits',
    {
      config: read,
      schema: {
        tags,
        summary: 'What each limit has said, and how full it was',
        description: 'On all instances, since they were started.',
        params: NameParams,
        response: { 200: LimitsAnswer },
      },
    },
    async ({ caller, params }) => {
      seen(caller, params.name)
      const limits = (await admin.limitsOf(params.name)).map(({ utilization: { counts, sum }, ...told }) => {
        const requests = counts.reduce((all, count) => all + count, 0)
        return { ...told, requests, meanUse: requests === 0 ? null : sum / requests }
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
        summary: 'Follow decisions',
        description:
          'Decisions as they happen, as server-sent events: decision, and lost with how many there was no room for. A reader who is slow loses some; no request waits for him.',
        querystring: TailQuery,
        response: { 200: Events },
      },
    },
    async ({ caller, query, raw }, reply) => {
      const { limiter, key, denied } = query
      if (limiter !== undefined) seen(caller, limiter)
      const limiters = (): string[] => {
        // A token may be taken back, or told to be for less, while he reads.
        const reader = gatekeeper.admit(raw.headers.authorization)
        reader.must('read')
        const names = new Set([...service.active().map(({ declared }) => declared.name), ...admin.seen()])
        return Array.from(names).filter(
          (name) => (limiter === undefined || name === limiter) && reader.may(name),
        )
      }
      const stream = admin.tail.open(() => ({ limiters: limiters(), key, denied }))
      raw.once('close', () => stream.destroy())
      // Nothing between should keep it, or wait for its end.
      reply.headers({ 'cache-control': 'no-store', 'x-accel-buffering': 'no' })
      // A stream is what is sent as it comes; the schema says what it reads like.
      return reply.type('text/event-stream').send(stream as never)
    },
  )

  app.get(
    '/v1/admin/audit',
    {
      config: read,
      schema: {
        tags,
        summary: 'Who has changed what',
        description: 'The newest first.',
        querystring: AuditQuery,
        response: { 200: AuditAnswer },
      },
    },
    async ({ caller, query }) => {
      const may = ({ limiter }: AuditEntry) => limiter === undefined || caller.may(limiter)
      return { entries: await admin.audit.list(query.count ?? 50, may) }
    },
  )

  // What is open without an end is ended.
  app.addHook('preClose', (done) => {
    admin.closeStreams()
    done()
  })
}

function keyRoutes(app: App, { service, admin }: Context): void {
  const response = { 200: Done }
  app.post(
    '/v1/admin/reset',
    {
      config: change,
      schema: { tags, summary: 'Forget what a key has used, and its bans', body: KeyBody, response },
    },
    async ({ body, caller }) => {
      const key = body.key as AnyKey
      const { limiter } = limiterFor(service, caller, body.limiter)
      const action = { who: caller.name, what: 'reset', limiter: body.limiter, key }
      await admin.audit.act(action, () => limiter.reset(key))
      return { done: true as const }
    },
  )

  app.post(
    '/v1/admin/ban',
    {
      config: change,
      schema: { tags, summary: 'Deny a key everything for a time', body: BanBody, response },
    },
    async ({ body, caller }) => {
      const key = body.key as AnyKey
      const duration = body.duration as Duration
      const { limiter } = limiterFor(service, caller, body.limiter)
      const action = { who: caller.name, what: 'ban', limiter: body.limiter, key, detail: { duration } }
      await admin.audit.act(action, () => limiter.block(key, duration))
      return { done: true as const }
    },
  )

  app.post(
    '/v1/admin/unban',
    { config: change, schema: { tags, summary: 'Let a key go', body: KeyBody, response } },
    async ({ body, caller }) => {
      const key = body.key as AnyKey
      const { limiter } = limiterFor(service, caller, body.limiter)
      const action = { who: caller.name, what: 'unban', limiter: body.limiter, key }
      await admin.audit.act(action, () => limiter.unblock(key))
      return { done: true as const }
    },
  )
}

function overrideRoutes(app: App, { service, admin }: Context): void {
  app.get(
    '/v1/admin/overrides',
    {
      config: read,
      schema: {
        tags,
        summary: 'List limits of single keys',
        description: 'Keys are as they were given; of a limiter with hashKeys as they are stored.',
        querystring: OverridesQuery,
        response: { 200: OverridesAnswer },
      },
    },
    async ({ caller, query }) => {
      const { limiter } = limiterFor(service, caller, query.limiter)
      const overrides = (await limiter.overrides.list()).map((override) => ({
        ...override,
        limits: override.limits.map(declarationOf),
      }))
      return { limiter: query.limiter, overrides }
    },
  )

  app.put(
    '/v1/admin/overrides',
    {
      config: change,
      schema: {
        tags,
        summary: 'Give a key limits of its own',
        description: 'In force within a second on all instances on the same store.',
        body: OverrideBody,
        response: { 200: Done },
      },
    },
    async ({ body, caller }) => {
      const { limits, ttl } = body
      const key = keyIn(body)
      const { limiter } = limiterFor(service, caller, body.limiter)
      const made = limits.map(limitOf)
      const detail = { limits, ...(ttl !== undefined && { ttl }) }
      const action = { who: caller.name, what: 'override', limiter: body.limiter, key, detail }
      await admin.audit.act(action, () => limiter.overrides.set(key, made, { ttl: ttl as Duration }))
      return { done: true as const }
    },
  )

  app.delete(
    '/v1/admin/overrides',
    {
      config: change,
      schema: {
        tags,
        summary: 'Hold a key to its usual limits again',
        body: OverrideKeyBody,
        response: { 200: Deleted },
      },
    },
    async ({ body, caller }) => {
      const key = keyIn(body)
      const { limiter } = limiterFor(service, caller, body.limiter)
      const action = { who: caller.name, what: 'delete override', limiter: body.limiter, key }
      const wasThere = await admin.audit.act(action, () => limiter.overrides.delete(key))
      return { done: true as const, wasThere }
    },
  )
}

function steeringRoutes(app: App, { service, admin }: Context): void {
  app.post(
    '/v1/admin/shadow',
    {
      config: change,
      schema: {
        tags,
        summary: 'Make limits shadow limits, or enforce them',
        description:
          'Whatever the configuration says, until it is taken back by null. In force within a second on all instances on the same store. What is said of one limit stands before what is said of all.',
        body: ShadowBody,
        response: { 200: Shadowed },
      },
    },
    async ({ body, caller }) => {
      const { limiter, limit = ALL, shadow } = body
      const names = limitNamesOf(limiterFor(service, caller, limiter))
      if (limit !== ALL && !names.includes(limit)) {
        const known = names.join(', ')
        throw new ServiceError(
          400,
          'unknown_limit',
          `${limiter} has no limit ${JSON.stringify(limit)}; it has ${known}`,
        )
      }
      const action = { who: caller.name, what: 'shadow', limiter, detail: { limit, shadow } }
      await admin.audit.act(action, async () => {
        await admin.steering.say(limiter, limit, shadow)
        await admin.steer()
      })
      return { done: true as const, limits: limitsTold(service.get(limiter)) }
    },
  )

  app.post(
    '/v1/admin/drain',
    {
      config: change,
      schema: {
        tags,
        summary: 'Be ready no more, or again',
        description: 'Of this instance, with all its processes. It goes on to answer whoever asks.',
        body: DrainBody,
        response: { 200: Drained },
      },
    },
    async ({ body, caller }) => {
      const { drain } = body
      if (!service.active().every(({ declared }) => caller.may(declared.name))) {
        throw new ServiceError(403, 'forbidden', `${caller.name} may not drain: there are limiters of others`)
      }
      await admin.drain(drain)
      await admin.audit.note({ who: caller.name, what: 'drain', detail: { drain } })
      return { done: true as const, draining: service.isDraining }
    },
  )
}

function declaredTold(active: ActiveLimiter) {
  const { name, config } = active.declared
  // A secret is none of what is told.
  const { hashKeys, ...told } = config
  return { name, config: told, hashesKeys: hashKeys !== undefined, limits: limitsTold(active) }
}

/** What is in force for keys without a plan or an override. */
function limitsTold({ declared }: ActiveLimiter): object[] {
  const told = (dimension: string, limit: Limit) => ({
    ...(dimension !== '' && { dimension }),
    ...declarationOf(limit),
  })
  return Array.from(declared.usual).flatMap(([dimension, limits]) =>
    limits.map((limit) => told(dimension, limit)),
  )
}

function limitNamesOf({ declared }: ActiveLimiter): readonly string[] {
  const limits = Array.from(declared.usual.keys()).flatMap((dimension) => declared.setsOf(dimension).flat())
  return Array.from(new Set(limits.map(({ name }) => name)))
}

function keyIn({ key, dimension }: { readonly key: unknown; readonly dimension?: string }): AnyKey {
  if (dimension === undefined) return key as AnyKey
  if (typeof key === 'string') return { [dimension]: key }
  throw new ServiceError(400, 'invalid_key', 'with a dimension the key is a text')
}
