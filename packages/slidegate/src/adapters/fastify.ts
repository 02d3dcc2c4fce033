// The adapter for Fastify 5.
import type {
  FastifyContextConfig,
  FastifyPluginCallback,
  FastifyReply,
  FastifyRequest,
  HookHandlerDoneFunction,
} from 'fastify'
import type { DenialResponse } from '../http/denial-message.ts'
import { createGuard, type Guard } from '../http/guard.ts'
import { lowerCase } from '../http/headers.ts'
import { enter, FrameworkReply, type NodeResponse, nodeBinding } from '../http/node.ts'
import { checkRateLimit } from '../http/option-names.ts'
import { GUARD_NAMES, type GuardOptions } from '../http/options.ts'
import { RouteOptions, routeName } from '../http/per-route.ts'
import { fastifyProxySetting, unlessSpoofed } from '../http/trust.ts'

/** A route's declaration, or the route that a request matched. */
interface Route {
  readonly config?: FastifyContextConfig | undefined
  readonly method: string | readonly string[]
  readonly url?: string | undefined
}

type Args = [request: FastifyRequest, reply: FastifyReply, done: HookHandlerDoneFunction]

export interface RateLimitOptions extends GuardOptions<Args> {
  /** `false` limits only routes with a `config.rateLimit`. Default: `true`. */
  readonly global?: boolean
}

declare module 'fastify' {
  interface FastifyContextConfig {
    /**
     * Overrides options of {@link rateLimit} for this route. `false` exempts the route. Limits set here apply to this route
     * alone, unless you also set `name` or `limiter`. Routes that differ only in `constraints` each need a `name`.
     */
    rateLimit?: GuardOptions<Args> | false
  }
}

/**
 * Returns a plugin for Fastify 5.
 *
 * It limits the routes of the instance that registers it, the routes of plugins registered later, and
 * requests that match no route. A route can override options in its `config.rateLimit`.
 *
 *     app.register(rateLimit({ limits: [slidingWindow({ limit: 100, window: '1m' })] }))
 *
 * The default key is the address in `request.ip`. List your proxies in the app's `trustProxy` setting. If
 * that setting trusts every client, requests fail with `invalid_option`, because clients could spoof their
 * address. Errors, such as `StoreUnavailableError`, go to the app's error handler.
 */
export function rateLimit(options: RateLimitOptions): FastifyPluginCallback {
  checkRateLimit(options, { ...GUARD_NAMES, global: true })
  const node = nodeBinding<Args>(
    (request) => request.raw,
    (_, reply) => reply.raw,
  )
  // Fastify doesn't expose `trustProxy`, so the setting is tested with a forged request.
  const address = unlessSpoofed<FastifyRequest>('trustProxy')
  const proxySetting = fastifyProxySetting
  const binding = { ...node, address, proxySetting }
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
    // Reports invalid options immediately, except for routes declared before the plugin was loaded.
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
    // Sends bytes, because Fastify would add a charset to a string's content type.
    this.own.code(status).send(Buffer.from(body))
  }

  override drop(): void {
    this.own.hijack()
    super.drop()
  }
}

/** The metadata that fastify-plugin would set. It makes hooks apply to the instance that registers the plugin. */
const PLUGIN = {
  [Symbol.for('skip-override')]: true,
  [Symbol.for('fastify.display-name')]: 'slidegate',
  [Symbol.for('plugin-meta')]: { name: 'slidegate', fastify: '5.x' },
}
