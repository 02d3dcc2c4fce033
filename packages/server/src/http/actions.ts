// Routes for changes by operators: resets, shadow mode, draining, undoing.

import type { AnyKey } from 'slidegate'
import type { AuditEntry } from '../admin/api-types.ts'
import { ALL } from '../admin/shadow-switches.ts'
import { shadowStateOf, undo } from '../admin/undo.ts'
import type { ActiveLimiter } from '../service/service.ts'
import { ServiceError } from '../service/service-error.ts'
import { Done, DrainBody, Drained, KeyBody, ShadowBody, Shadowed, UndoBody, Undone } from './admin-schemas.ts'
import type { App, Context } from './context.ts'
import { overrideRoutes } from './overrides.ts'
import { limiterFor } from './requests.ts'
import { problemAnswer } from './schemas.ts'
import { limitBodies } from './views.ts'

const change = { role: 'admin' } as const
const tags = ['admin']

/** Routes that change the running service. Every change is written to the audit log. */
export function actionRoutes(app: App, context: Context): void {
  resetRoute(app, context)
  overrideRoutes(app, context)
  shadowRoutes(app, context)
  undoRoute(app, context)
}

function resetRoute(app: App, { service, admin }: Context): void {
  app.post(
    '/v1/admin/reset',
    {
      config: change,
      schema: {
        tags,
        summary: "Reset a key's usage and bans",
        description: "The key's override and block remain.",
        body: KeyBody,
        response: { 200: Done },
      },
    },
    async ({ body, caller }) => {
      const key = body.key as AnyKey
      const { limiter } = limiterFor(service, caller, body.limiter)
      const { reason } = body
      const action = { who: caller.name, what: 'reset', limiter: body.limiter, key, reason }
      await admin.audit.act(action, () => limiter.reset(key))
      await admin.bans.lifted(body.limiter, key, ['ban'])
      return { done: true as const }
    },
  )
}

function shadowRoutes(app: App, { service, admin }: Context): void {
  app.post(
    '/v1/admin/shadow',
    {
      config: change,
      schema: {
        tags,
        summary: 'Turn shadow mode on or off',
        description:
          'The setting takes precedence over the configuration until you set `shadow` to null. It takes effect within a second on all instances that share the store. A setting for one limit takes precedence over the setting for all limits.',
        body: ShadowBody,
        response: { 200: Shadowed },
      },
    },
    async ({ body, caller }) => {
      const { limiter, limit = ALL, shadow, reason } = body
      const names = limitNamesOf(limiterFor(service, caller, limiter))
      if (limit !== ALL && !names.includes(limit)) {
        const known = names.join(', ')
        throw new ServiceError(
          400,
          'unknown_limit',
          `${limiter} has no limit ${JSON.stringify(limit)}; its limits are ${known}`,
        )
      }
      const action = { who: caller.name, what: 'shadow', limiter, detail: { limit, shadow }, reason }
      const work = async () => {
        await admin.shadowSwitches.set(limiter, limit, shadow)
        await admin.applyShadowSwitches()
      }
      await admin.audit.act(action, work, () => shadowStateOf(admin, limiter))
      return { done: true as const, limits: limitBodies(service.get(limiter)) }
    },
  )

  app.post(
    '/v1/admin/drain',
    {
      config: change,
      schema: {
        tags,
        summary: 'Start or stop draining',
        description:
          'While this instance drains, `/readyz` reports all its processes as not ready. They still answer requests.',
        body: DrainBody,
        response: { 200: Drained },
      },
    },
    async ({ body, caller }) => {
      const { drain, reason } = body
      if (!service.active().every(({ declared }) => caller.may(declared.name))) {
        throw new ServiceError(
          403,
          'forbidden',
          `${caller.name} can't drain: this requires access to all limiters`,
        )
      }
      await admin.drain(drain)
      await admin.audit.note({ who: caller.name, what: 'drain', detail: { drain }, reason })
      return { done: true as const, draining: service.isDraining }
    },
  )
}

function undoRoute(app: App, { service, admin }: Context): void {
  app.post(
    '/v1/admin/undo',
    {
      config: change,
      schema: {
        tags,
        summary: 'Undo a change',
        description:
          'Restores the previous override, block or shadow switch for its remaining time. A lifted ban is restored as a block. The undo gets its own entry in the audit log.',
        body: UndoBody,
        response: {
          200: Undone,
          409: problemAnswer(
            "A later change prevents the undo (`changed_since`), or the change can't be undone (`not_undoable`).",
          ),
        },
      },
    },
    async ({ body, caller }) => {
      const { id, reason } = body
      const isMine = ({ limiter }: AuditEntry) => limiter === undefined || caller.may(limiter)
      const change = await admin.audit.find(id, isMine)
      if (change === undefined)
        throw new ServiceError(404, 'unknown_change', `the audit log has no change ${JSON.stringify(id)}`)
      const summary = await undo(service, admin, change, { who: caller.name, reason })
      return { done: true as const, summary }
    },
  )
}

function limitNamesOf({ declared }: ActiveLimiter): readonly string[] {
  const limits = Array.from(declared.usual.keys()).flatMap((dimension) => declared.setsOf(dimension).flat())
  return Array.from(new Set(limits.map(({ name }) => name)))
}
