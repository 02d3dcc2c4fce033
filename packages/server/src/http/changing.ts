import { Readable } from 'node:stream'
import type { AnyKey, Limiter, Override, OverrideOptions } from 'slidegate'
import type { Static } from 'typebox'
import { ALL } from '../admin/steering.ts'
import type { Caller } from '../service/gatekeeper.ts'
import type { ActiveLimiter, Service } from '../service/service.ts'
import { ServiceError } from '../service/service-error.ts'
import {
  BlockBody,
  Deleted,
  Done,
  DrainBody,
  Drained,
  KeyBody,
  OverrideBody,
  OverrideKeyBody,
  OverrideLines,
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
type OverrideChange = Parameters<Limiter<AnyKey>['overrides']['set']>[1]
type ChangeBody = Pick<Static<typeof OverrideBody>, 'limits' | 'exempt' | 'block'>

/** To change the service while it runs. Every change is in the audit. */
export function changingRoutes(app: App, context: Context): void {
  keyRoutes(app, context)
  overrideRoutes(app, context)
  steeringRoutes(app, context)
}

function keyRoutes(app: App, { service, admin }: Context): void {
  const response = { 200: Done }
  const route = (
    what: 'reset' | 'unblock',
    summary: string,
    work: (limiter: Limiter<AnyKey>, key: AnyKey) => Promise<unknown>,
  ): void => {
    app.post(
      `/v1/admin/${what}`,
      { config: change, schema: { tags, summary, body: KeyBody, response } },
      async ({ body, caller }) => {
        const key = body.key as AnyKey
        const active = limiterFor(service, caller, body.limiter)
        if (what === 'unblock' && active.declared.config.ban === undefined) mustHaveOverrides(active)
        const action = { who: caller.name, what, limiter: body.limiter, key }
        await admin.audit.act(action, () => work(active.limiter, key))
        return { done: true as const }
      },
    )
  }
  route('reset', 'Forget what a key has used, and its bans', (limiter, key) => limiter.reset(key))
  app.post(
    '/v1/admin/block',
    {
      config: change,
      schema: {
        tags,
        summary: 'Block a key',
        description: 'Denies every request of the key, for ttl or until it is unblocked.',
        body: BlockBody,
        response,
      },
    },
    async ({ body, caller }) => {
      const { ttl } = body
      const key = body.key as AnyKey
      const { overrides } = overridable(service, caller, body.limiter)
      const detail = ttl !== undefined && { detail: { ttl } }
      const action = { who: caller.name, what: 'block', limiter: body.limiter, key, ...detail }
      await admin.audit.act(action, () => overrides.set(key, 'block', { ttl: ttl as Duration }))
      return { done: true as const }
    },
  )
  route('unblock', 'Lift the block of a key, and its bans', (limiter, key) => limiter.unblock(key))
}

function overrideRoutes(app: App, { service, admin }: Context): void {
  app.get(
    '/v1/admin/overrides',
    {
      config: { role: 'read' },
      schema: {
        tags,
        summary: 'List overrides',
        description: 'In no particular order. Keys of a limiter with hashKeys are as they are stored.',
        querystring: OverridesQuery,
        response: { 200: OverrideLines },
      },
    },
    async ({ caller, query }, reply) => {
      const list = overridable(service, caller, query.limiter).overrides.list()[Symbol.asyncIterator]()
      // If the store fails at once, the answer is a problem.
      const first = await list.next()
      reply.header('cache-control', 'no-store').type('application/x-ndjson')
      return reply.send(Readable.from(linesOf(first, list, query.count)) as never)
    },
  )

  app.put(
    '/v1/admin/overrides',
    {
      config: change,
      schema: {
        tags,
        summary: 'Set the override of a key',
        description: 'In force at the next request, on all instances on the same store.',
        body: OverrideBody,
        response: { 200: Done },
      },
    },
    async ({ body, caller }) => {
      const { limiter, key: _key, dimension: _dimension, ...detail } = body
      const key = keyIn(body)
      const { overrides } = overridable(service, caller, limiter)
      const change = changeIn(body)
      const action = { who: caller.name, what: 'override', limiter, key, detail }
      await admin.audit.act(action, () => overrides.set(key, change, { ttl: body.ttl as Duration }))
      return { done: true as const }
    },
  )

  app.delete(
    '/v1/admin/overrides',
    {
      config: change,
      schema: {
        tags,
        summary: 'Delete the override of a key, and its block',
        body: OverrideKeyBody,
        response: { 200: Deleted },
      },
    },
    async ({ body, caller }) => {
      const key = keyIn(body)
      const { overrides } = overridable(service, caller, body.limiter)
      const action = { who: caller.name, what: 'delete override', limiter: body.limiter, key }
      const wasThere = await admin.audit.act(action, () => overrides.delete(key))
      return { done: true as const, wasThere }
    },
  )
}

/** @throws {ServiceError} `unknown_limiter`, `no_overrides` */
function overridable(service: Service, caller: Caller, name: string): Limiter<AnyKey> {
  const active = limiterFor(service, caller, name)
  mustHaveOverrides(active)
  return active.limiter
}

/** @throws {ServiceError} `no_overrides` */
function mustHaveOverrides({ declared: { name, config } }: ActiveLimiter): void {
  if (config.overrides !== false) return
  throw new ServiceError(
    409,
    'no_overrides',
    `the configuration of ${name} has overrides: false; remove that to block its keys or change their limits`,
  )
}

/** @throws {ServiceError} `invalid_request` */
function changeIn({ limits, exempt, block }: ChangeBody): OverrideChange {
  const given = [limits, exempt && ('exempt' as const), block && ('block' as const)]
  const [change, ...others] = given.filter((each) => each !== undefined)
  if (change !== undefined && others.length === 0) return change as OverrideChange
  throw new ServiceError(
    400,
    'invalid_request',
    'the body has none or several of limits, exempt and block; give exactly one',
  )
}

/** Bytes that are sent together. */
const CHUNK = 16_384

async function* linesOf(
  first: IteratorResult<Override>,
  list: AsyncIterator<Override>,
  count = Number.POSITIVE_INFINITY,
): AsyncGenerator<string, void, undefined> {
  let lines = ''
  let sent = 0
  try {
    for (let next = first; !next.done && sent < count; next = await list.next()) {
      sent++
      lines += `${JSON.stringify(next.value)}\n`
      if (lines.length < CHUNK) continue
      yield lines
      lines = ''
    }
    yield lines
  } finally {
    await list.return?.()
  }
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
