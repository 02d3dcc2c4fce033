import type { FastifyPluginCallback, FastifyReply, FastifyRequest, HookHandlerDoneFunction } from 'fastify'
import { addressKey } from '../http/address.ts'
import { after, settle } from '../http/at-once.ts'
import { mayBeCut } from '../http/client-address.ts'
import { createGuard, type Denial } from '../http/guard.ts'
import type { Header } from '../http/headers.ts'
import type { GuardOptions } from '../http/options.ts'
import { MANY, STRANGERS, spoofableAddress } from '../http/trust.ts'

export type RateLimitOptions = GuardOptions<
  [request: FastifyRequest, reply: FastifyReply, done: HookHandlerDoneFunction]
>

/**
 * A plugin for Fastify 5. It limits the instance that registers it: all its routes, what is not found, and the
 * plugins that are registered after it.
 *
 *     app.register(rateLimit({ limits: [slidingWindow({ limit: 100, window: '1m' })] }))
 *
 * Without a `key` function callers are told apart by `request.ip`, which is right only if the app's `trustProxy`
 * names its proxies: where it trusts everybody callers choose their own address, so that is refused
 * (`invalid_option`). Errors, `StoreUnavailableError` among them, go to the app's error handler.
 */
export function rateLimit(options: RateLimitOptions): FastifyPluginCallback {
  const guard = createGuard(options, clientAddressKey())
  const { onDenied } = options

  function admits(
    request: FastifyRequest,
    reply: FastifyReply,
    next: HookHandlerDoneFunction,
  ): boolean | PromiseLike<boolean> {
    return after(guard(request), ({ headers, denial }) => {
      setHeaders(reply, headers)
      if (denial === undefined) return true
      if (onDenied !== undefined) return after(onDenied(denial.decision, request, reply, next), () => false)
      send(reply, denial)
      return false
    })
  }

  const plugin: FastifyPluginCallback = (app, _options, done) => {
    app.addHook('onRequest', (request, reply, next) =>
      settle(
        () => admits(request, reply, next),
        (admitted) => {
          if (admitted) next()
        },
        next,
      ),
    )
    done()
  }
  return Object.assign(plugin, PLUGIN)
}

/** What fastify-plugin would set: the hook is for the instance that registers the plugin, not for one of its own. */
const PLUGIN = {
  [Symbol.for('skip-override')]: true,
  [Symbol.for('fastify.display-name')]: 'slidegate',
  [Symbol.for('plugin-meta')]: { name: 'slidegate', fastify: '5.x' },
}

/** The setting stands nowhere to be read. It is the same for all requests of an app, and so of a prototype. */
function clientAddressKey(): (request: FastifyRequest) => string {
  // Every plugin with routes has a prototype of its own.
  const checked = new WeakSet<object>()
  return (request) => {
    const prototype = Object.getPrototypeOf(request)
    if (!checked.has(prototype)) {
      if (believesAnybody(request)) throw spoofableAddress('trustProxy')
      checked.add(prototype)
    }
    return addressKey(mayBeCut(request) ? undefined : request.ip)
  }
}

/** Whether a chain of strangers is believed up to its far end. */
function believesAnybody(request: FastifyRequest): boolean {
  const end = '198.51.100.1'
  return STRANGERS.some((stranger) => {
    const raw = {
      headers: { 'x-forwarded-for': [end, ...Array<string>(MANY).fill(stranger)].join(', ') },
      socket: { remoteAddress: stranger },
    }
    return Object.create(request, { raw: { value: raw } }).ip === end
  })
}

function setHeaders(reply: FastifyReply, headers: readonly Header[]): void {
  for (const { name, value, append } of headers) {
    const earlier = append && reply.getHeader(name)
    reply.header(name, earlier === undefined ? value : append!(String(earlier), value))
  }
}

function send(reply: FastifyReply, denial: Denial): void {
  setHeaders(reply, denial.headers)
  // To JSON in a string Fastify would add a charset, which JSON does not have.
  reply.code(denial.status).send(Buffer.from(denial.body))
}
