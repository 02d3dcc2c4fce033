// Routes for overriding and blocking keys.

import { Readable } from 'node:stream'
import type { AnyKey, Override, OverrideChange, OverrideOptions } from 'slidegate'
import { lasting } from '../admin/change-words.ts'
import { type KeyState, keyStateOf } from '../admin/key-state.ts'
import { keysOf } from '../admin/keys.ts'
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
  OverrideSet,
  OverridesQuery,
} from './admin-schemas.ts'
import type { App, Context } from './context.ts'
import { keyIn, limiterFor } from './requests.ts'
import { problemAnswer } from './schemas.ts'

const change = { role: 'admin' } as const
const tags = ['admin']
const NO_OVERRIDES = { 409: problemAnswer("The limiter's configuration has `overrides: false`.") }

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
        description:
          'Returns overrides in no particular order. If the limiter has `hashKeys`, the keys are hashes.',
        querystring: OverridesQuery,
        response: { 200: OverrideLines, ...NO_OVERRIDES },
      },
    },
    async ({ caller, query }, reply) => {
      const { reader } = overridable(service, caller, query.limiter)
      const list = reader.overrides.list()[Symbol.asyncIterator]()
      // Reads once before responding, so that a store failure leads to a proper error response.
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
        summary: "Set a key's override",
        description: 'Takes effect on the next request, on all instances that share the store.',
        body: OverrideBody,
        response: { 200: OverrideSet, ...NO_OVERRIDES },
      },
    },
    async ({ body, caller }) => {
      const { limiter: name, key: _key, dimension: _dimension, reason, ...detail } = body
      const key = keyIn(body)
      const { limiter, reader } = overridable(service, caller, name)
      const change = changeIn(body)
      const action = { who: caller.name, what: 'override', limiter: name, key, detail, reason }
      const work = () => limiter.overrides.set(key, change, { ttl: body.ttl as Duration })
      const { after } = await admin.audit.act(action, work, () => keyStateOf(reader, key))
      if (change === 'block')
        await admin.banRecorder.blocked({ limiter: name, key, who: caller.name, reason })
      else await admin.history.watchList.watchIfRoom(name, keysOf(key))
      const hint = body.block || after === undefined ? undefined : blockHint(after)
      return { done: true as const, ...(hint !== undefined && { hint }) }
    },
  )

  app.delete(
    '/v1/admin/overrides',
    {
      config: change,
      schema: {
        tags,
        summary: "Delete a key's override and block",
        body: OverrideKeyBody,
        response: { 200: Deleted, ...NO_OVERRIDES },
      },
    },
    async ({ body, caller }) => {
      const key = keyIn(body)
      const { limiter, reader } = overridable(service, caller, body.limiter)
      const { reason } = body
      const action = { who: caller.name, what: 'delete override', limiter: body.limiter, key, reason }
      const work = () => limiter.overrides.delete(key)
      const { result } = await admin.audit.act(action, work, () => keyStateOf(reader, key))
      await admin.bans.lifted(body.limiter, key, ['block'])
      return { done: true as const, existed: result }
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
        description: 'Denies every request for the key until `ttl` has passed or you unblock it.',
        body: BlockBody,
        response: { 200: Done, ...NO_OVERRIDES },
      },
    },
    async ({ body, caller }) => {
      const { limiter: name, ttl, reason } = body
      const key = body.key as AnyKey
      const { limiter, reader } = overridable(service, caller, name)
      const detail = ttl !== undefined && { detail: { ttl } }
      const action = { who: caller.name, what: 'block', limiter: name, key, ...detail, reason }
      const work = () => limiter.overrides.set(key, 'block', { ttl: ttl as Duration })
      await admin.audit.act(action, work, () => keyStateOf(reader, key))
      await admin.banRecorder.blocked({ limiter: name, key, who: caller.name, reason })
      return { done: true as const }
    },
  )

  app.post(
    '/v1/admin/unblock',
    {
      config: change,
      schema: {
        tags,
        summary: "Lift a key's block and bans",
        body: KeyBody,
        response: { 200: Done, ...NO_OVERRIDES },
      },
    },
    async ({ body, caller }) => {
      const key = body.key as AnyKey
      const active = limiterFor(service, caller, body.limiter)
      if (active.declared.config.ban === undefined) mustHaveOverrides(active)
      const { limiter, reader } = active
      const { reason } = body
      const action = { who: caller.name, what: 'unblock', limiter: body.limiter, key, reason }
      await admin.audit.act(
        action,
        () => limiter.unblock(key),
        () => keyStateOf(reader, key),
      )
      await admin.bans.lifted(body.limiter, key, ['ban', 'block'])
      return { done: true as const }
    },
  )
}

/** @throws {ServiceError} `unknown_limiter`, `no_overrides` */
function overridable(service: Service, caller: Caller, name: string): ActiveLimiter {
  const active = limiterFor(service, caller, name)
  mustHaveOverrides(active)
  return active
}

/** Returns a hint if the key is still banned or blocked. Overriding its limits doesn't end a ban or block. */
function blockHint({ atMs, overrides }: KeyState): string | undefined {
  const ends = overrides.flatMap(({ bannedUntilMs, blockedUntilMs }) =>
    [bannedUntilMs, blockedUntilMs].filter((end) => end !== undefined),
  )
  if (ends.length === 0) return undefined
  const end = ends.includes(null) ? undefined : Math.max(...(ends as number[]))
  const words = end === undefined ? 'until you unblock it' : `for ${lasting(end - atMs)}`
  return `the key stays blocked ${words}: an override doesn't end bans or blocks. Unblock it to admit its requests`
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
