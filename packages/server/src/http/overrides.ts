// Routes for overrides and blocks of keys.

import { Readable } from 'node:stream'
import type { AnyKey, Limiter, Override, OverrideChange, OverrideOptions } from 'slidegate'
import type { Static } from '../json-schema.ts'
import type { Caller } from '../service/gatekeeper.ts'
import type { ActiveLimiter, Service } from '../service/service.ts'
import { ServiceError } from '../service/service-error.ts'
import {
  BlockBody,
  Deleted,
  Done,
  KeyBody,
  OverrideBody,
  OverrideKeyBody,
  OverrideLines,
  OverridesQuery,
} from './admin-schemas.ts'
import type { App, Context } from './context.ts'
import { limiterFor } from './requests.ts'
import { problemAnswer } from './schemas.ts'

const change = { role: 'admin' } as const
const tags = ['admin']
const NO_OVERRIDES = { 409: problemAnswer('The configuration of the limiter has `overrides: false`.') }

type Duration = Exclude<OverrideOptions['ttl'], undefined>
type ChangeBody = Pick<Static<typeof OverrideBody>, 'limits' | 'exempt' | 'block'>

/** Routes to override limits, exempt and block keys. Every change is written to the audit log. */
export function overrideRoutes(app: App, context: Context): void {
  listRoute(app, context)
  changeRoutes(app, context)
  blockRoutes(app, context)
}

function listRoute(app: App, { service }: Context): void {
  app.get(
    '/v1/admin/overrides',
    {
      config: { role: 'read' },
      schema: {
        tags,
        summary: 'List overrides',
        description: 'In no particular order. If the limiter has `hashKeys`, keys are hashes.',
        querystring: OverridesQuery,
        response: { 200: OverrideLines, ...NO_OVERRIDES },
      },
    },
    async ({ caller, query }, reply) => {
      const list = overridable(service, caller, query.limiter).overrides.list()[Symbol.asyncIterator]()
      // If the store fails at the first read, the response is a proper error.
      const first = await list.next()
      reply.header('cache-control', 'no-store').type('application/x-ndjson')
      return reply.send(Readable.from(linesOf(first, list, query.count)) as never)
    },
  )
}

function changeRoutes(app: App, { service, admin }: Context): void {
  app.put(
    '/v1/admin/overrides',
    {
      config: change,
      schema: {
        tags,
        summary: 'Set the override of a key',
        description: 'Takes effect at the next request, on all instances that share the store.',
        body: OverrideBody,
        response: { 200: Done, ...NO_OVERRIDES },
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
        summary: 'Delete the override and the block of a key',
        body: OverrideKeyBody,
        response: { 200: Deleted, ...NO_OVERRIDES },
      },
    },
    async ({ body, caller }) => {
      const key = keyIn(body)
      const { overrides } = overridable(service, caller, body.limiter)
      const action = { who: caller.name, what: 'delete override', limiter: body.limiter, key }
      const existed = await admin.audit.act(action, () => overrides.delete(key))
      return { done: true as const, existed }
    },
  )
}

function blockRoutes(app: App, { service, admin }: Context): void {
  app.post(
    '/v1/admin/block',
    {
      config: change,
      schema: {
        tags,
        summary: 'Block a key',
        description: 'Denies every request of the key, for `ttl` or until you unblock it.',
        body: BlockBody,
        response: { 200: Done, ...NO_OVERRIDES },
      },
    },
    async ({ body, caller }) => {
      const { limiter, ttl } = body
      const key = body.key as AnyKey
      const { overrides } = overridable(service, caller, limiter)
      const detail = ttl !== undefined && { detail: { ttl } }
      const action = { who: caller.name, what: 'block', limiter, key, ...detail }
      await admin.audit.act(action, () => overrides.set(key, 'block', { ttl: ttl as Duration }))
      return { done: true as const }
    },
  )

  app.post(
    '/v1/admin/unblock',
    {
      config: change,
      schema: {
        tags,
        summary: 'Lift the block and the bans of a key',
        body: KeyBody,
        response: { 200: Done, ...NO_OVERRIDES },
      },
    },
    async ({ body, caller }) => {
      const key = body.key as AnyKey
      const active = limiterFor(service, caller, body.limiter)
      if (active.declared.config.ban === undefined) mustHaveOverrides(active)
      const action = { who: caller.name, what: 'unblock', limiter: body.limiter, key }
      await admin.audit.act(action, () => active.limiter.unblock(key))
      return { done: true as const }
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
    `the configuration of ${name} has overrides: false; remove it to block keys or override their limits`,
  )
}

/** @throws {ServiceError} `invalid_request` */
function changeIn({ limits, exempt, block }: ChangeBody): OverrideChange {
  const given = [limits, exempt && ('exempt' as const), block && ('block' as const)]
  const [change, ...others] = given.filter((each) => each !== undefined)
  if (change !== undefined && others.length === 0) return change as OverrideChange
  throw new ServiceError(400, 'invalid_request', 'the body must have exactly one of limits, exempt and block')
}

/** Characters per chunk of the response. */
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

function keyIn({ key, dimension }: { readonly key: unknown; readonly dimension?: string }): AnyKey {
  if (dimension === undefined) return key as AnyKey
  if (typeof key === 'string') return { [dimension]: key }
  throw new ServiceError(400, 'invalid_key', 'with a dimension, the key must be a string')
}
