// Admits requests to the service: tokens, hosts, origins, how many at a time.

import type { ServerResponse } from 'node:http'
import { isIP, type Socket } from 'node:net'
import type { FastifyReply, FastifyRequest, onRequestHookHandler } from 'fastify'
import { exposedHeaders } from 'slidegate/http'
import type { AuthConfig, Role } from '../config/schema.ts'
import type { Caller } from '../service/gatekeeper.ts'
import { fits } from '../service/pattern.ts'
import { ServiceError } from '../service/service-error.ts'
import type { App, Context } from './context.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** What a caller needs for this route. Left out: nothing, and nobody is asked who he is. */
    role?: Role
    /** Whether the route needs no token while the configuration has none. */
    isOpen?: boolean
    /** The header with the bare token, where all others, `Authorization`, `Host` and `Origin` too, are those of a gateway's client. */
    tokenHeader?: string
  }
  interface FastifyRequest {
    /** Who asks. Only on routes with a role. */
    caller: Caller
  }
}

const DEFAULT_IN_FLIGHT = 10_000

/** Lets nobody on to a route who may not, before anything of a body is read. */
export function guardEntrance(app: App, { gatekeeper, service }: Context): void {
  const pages = new Pages(() => service.config.auth)
  let inFlight = 0
  let isClosing = false
  const leave = () => {
    inFlight--
    // The framework closes those without a request once: others would be kept open by their clients.
    if (isClosing) app.server.closeIdleConnections()
  }
  app.addHook('preClose', (done) => {
    isClosing = true
    done()
  })
  const enter = (
    request: FastifyRequest,
    reply: FastifyReply,
    role: Role,
    authorization: string | undefined,
    isOpen: boolean,
  ) => {
    request.caller = gatekeeper.admit(authorization)
    request.caller.must(role, isOpen)
    const most = service.config.caps?.inFlight ?? DEFAULT_IN_FLIGHT
    if (inFlight >= most) {
      throw new ServiceError(
        503,
        'overloaded',
        `${most} requests are under way already; ask again in a moment`,
      )
    }
    inFlight++
    // Once in any case, be it that all is said or that the client has hung up.
    reply.raw.once('close', leave)
    if (reply.raw.socket === null) closeBehind(reply.raw, request.raw.socket)
  }

  const hooks = new WeakSet<object>()
  app.decorateRequest('caller')
  app.addHook('onRoute', (route) => {
    const { role, tokenHeader, isOpen = false } = route.config ?? {}
    // Called again for the HEAD of a GET.
    const before = [route.onRequest ?? []].flat().filter((hook) => !hooks.has(hook))
    const hook: onRequestHookHandler = (request, reply, done) => {
      const { headers } = request.raw
      if (tokenHeader === undefined) {
        pages.check(headers.host, headers.origin, reply)
        gatekeeper.mustBeDirect(headers)
      }
      if (role !== undefined) enter(request, reply, role, authorizationIn(headers, tokenHeader), isOpen)
      done()
    }
    hooks.add(hook)
    route.onRequest = [hook, ...before]
  })

  app.options('*', { schema: { hide: true } }, (request, reply) => {
    const wanted = request.headers['access-control-request-method']
    if (request.headers.origin === undefined || wanted === undefined) return reply.callNotFound()
    // The origin was checked before.
    reply.headers({
      'access-control-allow-methods': 'GET, POST',
      'access-control-allow-headers': 'authorization, content-type',
      'access-control-max-age': '600',
    })
    return reply.code(204).send()
  })
}

/** Of those that wait on one connection until others are answered, Node does not tell that the client has hung up. */
function closeBehind(response: ServerResponse, socket: Socket): void {
  const close = () => void response.emit('close')
  socket.setMaxListeners(0).once('close', close)
  response.once('close', () => socket.off('close', close))
}

function authorizationIn(
  headers: FastifyRequest['headers'],
  tokenHeader: string | undefined,
): string | undefined {
  if (tokenHeader === undefined) return headers.authorization
  // A gateway that was given none may send it empty.
  const token = headers[tokenHeader]
  return token ? `Bearer ${token}` : undefined
}

/**
 * Keeps out web pages in the browsers of those who may ask: pages of other origins, and those whose name in the DNS was made
 * to lead here. A browser says so of each: in `Origin` and `Host`.
 */
class Pages {
  readonly #auth: () => AuthConfig | undefined
  #known: AuthConfig | undefined
  /** The host that was found right last. */
  #host: string | undefined

  constructor(auth: () => AuthConfig | undefined) {
    this.#auth = auth
  }

  /** @throws {ServiceError} `unknown_host`, `forbidden_origin` */
  check(host: string | undefined, origin: string | undefined, reply: FastifyReply): void {
    const auth = this.#auth()
    if (auth !== this.#known) {
      this.#known = auth
      this.#host = undefined
    }
    // Without a host it is no browser.
    if (host !== undefined && host !== this.#host) {
      if (!isOurs(host, auth?.hosts ?? [])) {
        throw new ServiceError(
          421,
          'unknown_host',
          'the Host is neither an address nor localhost nor one of auth.hosts of the configuration',
        )
      }
      this.#host = host
    }
    // The page of the service itself: its host is right.
    if (origin !== undefined && !isOf(origin, host)) this.#checkOrigin(origin, auth?.origins ?? [], reply)
  }

  #checkOrigin(origin: string, origins: readonly string[], reply: FastifyReply): void {
    if (!origins.includes(origin)) {
      throw new ServiceError(
        403,
        'forbidden_origin',
        'the Origin is none of auth.origins of the configuration',
      )
    }
    reply.headers({
      'access-control-allow-origin': origin,
      'access-control-expose-headers': exposedHeaders().join(', '),
      vary: 'Origin',
    })
  }
}

/** Whether a page came from this host; not by which scheme, since TLS may end before the service. */
function isOf(origin: string, host: string | undefined): boolean {
  return host !== undefined && /^https?:\/\/(.+)$/.exec(origin)?.[1] === host.toLowerCase()
}

function isOurs(host: string, hosts: readonly string[]): boolean {
  const given = host.toLowerCase()
  const [, name = ''] = /^(\[.*\]|[^:]*)(?::\d*)?$/.exec(given) ?? []
  if (name === 'localhost' || isIP(name.replace(/^\[(.*)\]$/, '$1')) !== 0) return true
  return hosts.some((pattern) => {
    const right = pattern.toLowerCase()
    return fits(right, name) || fits(right, given)
  })
}
