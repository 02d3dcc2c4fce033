// Fastify 5: a plugin.
import type {
  FastifyContextConfig,
  FastifyPluginCallback,
  FastifyReply,
  FastifyRequest,
  HookHandlerDoneFunction,
} from 'fastify'
import { checkOptions } from '../errors.ts'
import { createGuard, type Guard } from '../http/guard.ts'
import { drop, middleware, nodeBinding, ReplyFields, whenOver } from '../http/node.ts'
import { GUARD_NAMES, type GuardOptions } from '../http/options.ts'
import { RouteOptions, routeName } from '../http/per-route.ts'
import { unlessSpoofed } from '../http/trust.ts'

/** As it is declared, and as a request has it. */
interface Route {
  readonly config?: FastifyContextConfig | undefined
  readonly method: string | readonly string[]
  readonly url?: string | undefined
}

type Args = [request: FastifyRequest, reply: FastifyReply, done: HookHandlerDoneFunction]

export interface RateLimitOptions extends GuardOptions<Args> {
  /** `false` limits only routes that have a `config.rateLimit`. Default: `true`. */
  readonly global?: boolean
}

declare module 'fastify' {
  interface FastifyContextConfig {
    /**
     * What differs for this route from the options of {@link rateLimit}. Limits of its own count for the route alone, unless
     * they have a `name` or a `limiter`. Routes that differ only in `constraints` need a `name` each. `false`: not limited.
     */
    rateLimit?: GuardOptions<Args> | false
  }
}

/**
 * A plugin for Fastify 5. It limits the instance that registers it: its routes, those of plugins registered after it, and
 * requests without a route. The `config.rateLimit` of a route has what differs.
 *
 *     app.register(rateLimit({ limits: [slidingWindow({ limit: 100, window: '1m' })] }))
 *
 * The default key is the address in `request.ip`. The app's `trustProxy` must name its proxies: if it trusts everybody,
 * callers choose their own address, so requests fail (`invalid_option`). Errors, such as `StoreUnavailableError`, go to the
 * app's error handler.
 */
export function rateLimit(options: RateLimitOptions): FastifyPluginCallback {
  checkOptions(options, 'rateLimit', { ...GUARD_NAMES, global: true })
  const node = nodeBinding<Args>(
    (request) => request.raw,
    (_, reply) => reply.raw,
  )
  // The setting can't be read.
  const address = unlessSpoofed<FastifyRequest>('trustProxy')
  const binding = { ...node, address }
  const { global: isGlobal = true } = options
  const routes = new RouteOptions<Args>(options, !isGlobal)
  const shared = isGlobal ? createGuard(routes.shared!, binding) : undefined

  const guards = new WeakMap<object, Guard<Args>>()
  const guardOf = ({ config, method, url = '' }: Route): Guard<Args> | undefined => {
    const own = config?.rateLimit
    if (config === undefined || own === undefined) return shared
    if (own === false) return undefined
    if (!guards.has(config)) guards.set(config, routes.guardOf(own, routeName(method, url), binding))
    return guards.get(config)
  }

  const plugin: FastifyPluginCallback = (app, _options, done) => {
    // Wrong options fail at once, except those of routes that were declared before the plugin was loaded.
    app.addHook('onRoute', (route) => void guardOf(route))
    app.addHook('onRequest', (request, reply, next) => {
      const guard = guardOf(request.routeOptions)
      if (guard === undefined) next()
      else enter(guard, request, reply, next)
    })
    done()
  }
  return Object.assign(plugin, PLUGIN)
}

const enter = middleware<Args>({
  fields: (_, reply) => new ReplyFields(reply),
  whenOver: (over, _, reply) => whenOver(reply.raw, over, new ReplyFields(reply)),
  answer({ status, body }, _, reply) {
    // Fastify would add a charset to JSON in a string, which JSON does not have.
    reply.code(status).send(Buffer.from(body))
  },
  drop(_, reply) {
    reply.hijack()
    drop(reply.raw)
  },
  next: (_, __, next) => next,
})

/** What fastify-plugin would set, so that the hook is for the instance that registers the plugin. */
const PLUGIN = {
  [Symbol.for('skip-override')]: true,
  [Symbol.for('fastify.display-name')]: 'slidegate',
  [Symbol.for('plugin-meta')]: { name: 'slidegate', fastify: '5.x' },
}
