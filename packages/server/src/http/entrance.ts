// Checks requests before routes see them: tokens, hosts, origins, requests in flight.

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
    /** The role that this route requires. Default: none, so callers aren't authenticated. */
    role?: Role
    /** Whether callers on loopback need no token. Only applies if the configuration has no tokens. */
    isOpen?: boolean
    /** The header with the bare token. All other headers, even `Authorization`, come from the gateway's client. */
    tokenHeader?: string
  }
  interface FastifyRequest {
    /** The authenticated caller. Only set on routes with a role. */
    caller: Caller
  }
}

const DEFAULT_IN_FLIGHT = 10_000

/** Rejects unauthorized and excess requests before their bodies are read. */
export function guardEntrance(app: App, { gatekeeper, service }: Context): void {
  const pages = new Pages(() => service.config.auth)
  let inFlight = 0
  let isClosing = false
  const leave = () => {
    inFlight--
    // Fastify closes idle connections only once, so connections that become idle later are closed here.
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
      throw new ServiceError(503, 'overloaded', `${most} requests are already in flight; retry in a moment`)
    }
    inFlight++
    // `close` is emitted exactly once, whether the response is complete or the client has disconnected.
    reply.raw.once('close', leave)
    if (reply.raw.socket === null) closeBehind(reply.raw, request.raw.socket)
  }

  const hooks = new WeakSet<object>()
  app.decorateRequest('caller')
  app.addHook('onRoute', (route) => {
    const { role, tokenHeader, isOpen = false } = route.config ?? {}
    // For a GET route, Fastify calls onRoute again with its HEAD route, whose hooks already include ours.
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
    // The onRequest hook has checked the origin.
    reply.headers({
      'access-control-allow-methods': 'GET, POST',
      'access-control-allow-headers': 'authorization, content-type',
      'access-control-max-age': '600',
    })
    return reply.code(204).send()
  })
}

/** Emits `close` if the client disconnects. Node doesn't do that for pipelined responses that wait for earlier ones. */
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
  // A gateway without a token may send an empty header.
  const token = headers[tokenHeader]
  return token ? `Bearer ${token}` : undefined
}

/**
 * Rejects requests that other sites' pages make from a user's browser.
 *
 * `Origin` reveals requests from other sites, and `Host` reveals DNS rebinding.
 */
class Pages {
  readonly #auth: () => AuthConfig | undefined
  #known: AuthConfig | undefined
  /** The last host that was accepted. */
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
    // A request without a Host header isn't from a browser.
    if (host !== undefined && host !== this.#host) {
      if (!isOurs(host, auth?.hosts ?? [])) {
        throw new ServiceError(
          421,
          'unknown_host',
          "the Host isn't allowed; use an IP address or localhost, or add it to auth.hosts in the configuration",
        )
      }
      this.#host = host
    }
    // The dashboard has the same origin as the service.
    if (origin !== undefined && !isOf(origin, host)) this.#checkOrigin(origin, auth?.origins ?? [], reply)
  }

  #checkOrigin(origin: string, origins: readonly string[], reply: FastifyReply): void {
    if (!origins.includes(origin)) {
      throw new ServiceError(
        403,
        'forbidden_origin',
        "the Origin isn't allowed; add it to auth.origins in the configuration",
      )
    }
    reply.headers({
      'access-control-allow-origin': origin,
      'access-control-expose-headers': exposedHeaders().join(', '),
      vary: 'Origin',
    })
  }
}

/** Returns whether a page comes from this host. Ignores the scheme, because a proxy may terminate TLS. */
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
