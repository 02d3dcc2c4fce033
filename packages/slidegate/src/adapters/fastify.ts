// A plugin for Fastify 5.
import type {
  FastifyContextConfig,
  FastifyPluginCallback,
  FastifyReply,
  FastifyRequest,
  HookHandlerDoneFunction,
} from 'fastify'
import { checkOptions } from '../errors.ts'
import type { DenialResponse } from '../http/denial-message.ts'
import { createGuard, type Guard } from '../http/guard.ts'
import { lowerCase } from '../http/headers.ts'
import { enter, FrameworkReply, type NodeResponse, nodeBinding } from '../http/node.ts'
import { GUARD_NAMES, type GuardOptions } from '../http/options.ts'
import { RouteOptions, routeName } from '../http/per-route.ts'
import { unlessSpoofed } from '../http/trust.ts'

/** A route, as it is declared, or as a request has it. */
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
     * Options of this route that differ from those of {@link rateLimit}; `false` exempts it. Its own limits count for this route
     * alone, unless they have a `name` or a `limiter`. Routes that differ only in `constraints` need a `name` each.
     */
    rateLimit?: GuardOptions<Args> | false
  }
}

/**
 * A plugin for Fastify 5. It limits the instance that registers it: its routes, routes of plugins registered later, and requests
 * without a route. A route can override options in its `config.rateLimit`.
 *
 *     app.register(rateLimit({ limits: [slidingWindow({ limit: 100, window: '1m' })] }))
 *
 * The default key is the address in `request.ip`. The app's `trustProxy` must list its proxies: if it trusts every client,
 * clients can spoof their address, so requests fail (`invalid_option`). Errors, such as `StoreUnavailableError`, go to the app's
 * error handler.
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
    // Reports invalid options at once, except for routes that were declared before the plugin was loaded.
    app.addHook('onRoute', (route) => void guardOf(route))
    app.addHook('onRequest', (request, reply, next) => {
      const guard = guardOf(request.routeOptions)
      if (guard === undefined) next()
      else enter(guard, [request, reply, next], new Reply(reply), next)
    })
    done()
  }
  return Object.assign(plugin, PLUGIN)
}

class Reply extends FrameworkReply<FastifyReply> {
  get raw(): NodeResponse {
    return this.own.raw
  }

  override set(name: string, value: string): void {
    this.own.header(lowerCase(name), value)
  }

  answer({ status, body }: DenialResponse): void {
    // Fastify would add a charset to a string of JSON, which has none.
    this.own.code(status).send(Buffer.from(body))
  }

  override drop(): void {
    this.own.hijack()
    super.drop()
  }
}

/** Set by fastify-plugin in other plugins: the hook is for the instance that registers the plugin. */
const PLUGIN = {
  [Symbol.for('skip-override')]: true,
  [Symbol.for('fastify.display-name')]: 'slidegate',
  [Symbol.for('plugin-meta')]: { name: 'slidegate', fastify: '5.x' },
}
