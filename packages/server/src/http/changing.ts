import { type AnyKey, declarationOf, type Limiter, limitOf, type OverrideOptions } from 'slidegate'
import { ALL } from '../admin/steering.ts'
import type { ActiveLimiter } from '../service/service.ts'
import { ServiceError } from '../service/service-error.ts'
import {
  BanBody,
  Deleted,
  Done,
  DrainBody,
  Drained,
  KeyBody,
  OverrideBody,
  OverrideKeyBody,
  OverridesAnswer,
  OverridesQuery,
  ShadowBody,
  Shadowed,
} from './admin-schemas.ts'
import type { App } from './app.ts'
import type { Context } from './context.ts'
import { limitsTold } from './looking.ts'
import { limiterFor } from './requests.ts'

const change = { role: 'admin' } as const
const tags = ['admin']

type Duration = Exclude<OverrideOptions['ttl'], undefined>

/** To change the service while it runs. Every change is in the audit. */
export function changingRoutes(app: App, context: Context): void {
  keyRoutes(app, context)
  overrideRoutes(app, context)
  steeringRoutes(app, context)
}

function keyRoutes(app: App, { service, admin }: Context): void {
  const response = { 200: Done }
  const route = (
    what: 'reset' | 'unban',
    summary: string,
    work: (limiter: Limiter<AnyKey>, key: AnyKey) => Promise<unknown>,
  ): void => {
    app.post(
      `/v1/admin/${what}`,
      { config: change, schema: { tags, summary, body: KeyBody, response } },
      async ({ body, caller }) => {
        const key = body.key as AnyKey
        const { limiter } = limiterFor(service, caller, body.limiter)
        const action = { who: caller.name, what, limiter: body.limiter, key }
        await admin.audit.act(action, () => work(limiter, key))
        return { done: true as const }
      },
    )
  }
  route('reset', 'Forget what a key has used, and its bans', (limiter, key) => limiter.reset(key))
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
  route('unban', 'Let a key go', (limiter, key) => limiter.unblock(key))
}

function overrideRoutes(app: App, { service, admin }: Context): void {
  app.get(
    '/v1/admin/overrides',
    {
      config: { role: 'read' },
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

function limitNamesOf({ declared }: ActiveLimiter): readonly string[] {
  const limits = Array.from(declared.usual.keys()).flatMap((dimension) => declared.setsOf(dimension).flat())
  return Array.from(new Set(limits.map(({ name }) => name)))
}

function keyIn({ key, dimension }: { readonly key: unknown; readonly dimension?: string }): AnyKey {
  if (dimension === undefined) return key as AnyKey
  if (typeof key === 'string') return { [dimension]: key }
  throw new ServiceError(400, 'invalid_key', 'with a dimension the key is a text')
}
