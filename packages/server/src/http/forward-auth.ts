// Forward auth, for gateways.

import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Decision } from 'slidegate'
import { denialOf, draft11Headers, retryAfterHeaders } from 'slidegate/http'
import type { Config } from '../config/schema.ts'
import { OriginalRequest } from '../gateway/original-request.ts'
import { Rules } from '../gateway/rules.ts'
import type { App, Context } from './context.ts'

/** The header with the gateway's own token. `Authorization` contains its client's token. */
const GATEWAY_TOKEN = 'x-slidegate-token'

const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'] as const

/** The status of a denial, by URL. nginx only accepts 401 and 403 as denials. */
const STATUS_BY_URL = {
  '/v1/forward-auth': undefined,
  '/v1/forward-auth/401': 401,
  '/v1/forward-auth/403': 403,
} as const

/** Authorizes requests from gateways: nginx `auth_request`, Caddy `forward_auth`, Traefik ForwardAuth. */
export function forwardAuthRoutes(app: App, { service }: Context): void {
  const rulesNow = compiledOnce(() => service.config)
  app.register((scope, _options, done) => {
    // Bodies aren't read.
    scope.removeAllContentTypeParsers()
    scope.addContentTypeParser('*', (_request, _body, parsed) => parsed(null))
    for (const [url, urlStatus] of Object.entries(STATUS_BY_URL)) {
      scope.route({
        method: [...METHODS],
        url,
        config: { role: 'check', tokenHeader: GATEWAY_TOKEN },
        schema: { hide: url !== '/v1/forward-auth' },
        handler: async (request, reply) => {
          const ruling = rulesNow().rulingOf(new OriginalRequest(request.raw))
          if (ruling === 'allow') return reply.send()
          const { limiter, key, cost, plan, deniedStatus } = ruling
          request.caller.mustReach(limiter)
          const options = { cost, ...(plan !== undefined && { request: { plan } }) }
          const decision: Decision = await service.get(limiter).limiter.consume(key, options)
          reply.header('X-Slidegate-Limiter', limiter)
          return answer(decision, urlStatus ?? deniedStatus, request, reply)
        },
      })
    }
    done()
  })
}

function answer(decision: Decision, deniedStatus: number, request: FastifyRequest, reply: FastifyReply) {
  const { allowed, source } = decision
  if (source !== 'failOpen' && source !== 'failClosed') {
    for (const { name, value } of draft11Headers(decision)) reply.header(name, value)
  }
  if (allowed) return reply.send()
  const denial = denialOf(decision, { accept: request.headers.accept })
  // If the store failed, the status stays 503, because the client isn't at fault.
  const isUsual = denial.status !== 429 || deniedStatus === denial.status
  for (const { name, value } of isUsual ? denial.headers : retryAfterHeaders(decision))
    reply.header(name, value)
  return isUsual ? reply.code(denial.status).send(denial.body) : reply.code(deniedStatus).send()
}

/** Compiles the rules once per configuration. Throws for an invalid rule, but validation should have found it. */
function compiledOnce(configNow: () => Config): () => Rules {
  const compile = (config: Config) =>
    new Rules(config, (path, message) => {
      throw new Error(`${path.join('.')}: ${message}`)
    })
  let config = configNow()
  let rules = compile(config)
  return () => {
    if (config !== configNow()) {
      const next = configNow()
      rules = compile(next)
      config = next
    }
    return rules
  }
}
