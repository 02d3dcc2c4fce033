// The OpenAPI description.

import swagger from '@fastify/swagger'
import type { RouteOptions } from 'fastify'
import { VERSION } from '../service/instance.ts'
import type { App } from './context.ts'
import { problemAnswer, SHARED } from './schemas.ts'

/** The error responses that every route can return. */
const EVERYWHERE = {
  403: "The `Origin` isn't allowed.",
  404: 'No such route.',
  421: "The `Host` isn't allowed.",
  500: "Internal error. See the service's log.",
}
const WITH_ROLE = {
  400: 'Invalid request.',
  401: 'The token is missing or unknown.',
  403: "The token's role isn't sufficient, or the `Origin` isn't allowed.",
  404: 'No such limiter, or the token has no access to it.',
  503: 'The store is unavailable, or too many requests are in flight. Retry after `Retry-After` seconds.',
}
const WITH_BODY = {
  413: 'The body is too long or has too many requests.',
  415: "The `Content-Type` isn't `application/json`.",
}

/** Describes the API as OpenAPI 3.1, from the schemas that validate requests. */
export async function describeRoutes(app: App): Promise<void> {
  await app.register(swagger, {
    openapi: {
      openapi: '3.1.0',
      info: {
        title: 'slidegate',
        version: VERSION,
        description: 'Exact rate limiting as a service. JSON has no infinity, so infinite numbers are null.',
        license: { name: 'MIT', identifier: 'MIT' },
      },
      tags: [
        { name: 'decisions', description: 'Charge and check requests.' },
        { name: 'reservations', description: 'Charge now, and settle or refund later.' },
        { name: 'gateways', description: 'Authorize requests for a gateway.' },
        { name: 'admin', description: 'Inspect and change the running service.' },
        { name: 'service', description: 'Health, metrics and this description.' },
      ],
      components: {
        securitySchemes: {
          token: {
            type: 'http',
            scheme: 'bearer',
            description:
              'A token from `auth.tokens`. Without `auth.tokens`, the token in the admin link that the service prints at startup.',
          },
        },
      },
    },
    refResolver: { buildLocalReference: (json, _base, _fragment, i) => (json.$id as string) ?? `def-${i}` },
  })
  for (const [$id, schema] of Object.entries(SHARED)) app.addSchema({ ...schema, $id })
  app.addHook('onRoute', (route) => {
    if (route.schema?.hide !== true) route.schema = described(route)
  })
}

function described({ schema = {}, config = {}, method }: RouteOptions): NonNullable<RouteOptions['schema']> {
  const { role, isOpen = role === 'check' } = config
  const withBody = role !== undefined && [method].flat().includes('POST')
  const problems = { ...EVERYWHERE, ...(role && WITH_ROLE), ...(withBody && WITH_BODY) }
  const response = (schema.response ?? { 200: { description: 'Done.', type: 'null' } }) as Record<
    string,
    unknown
  >
  for (const [status, description] of Object.entries(problems)) {
    response[status] ??= problemAnswer(description)
  }
  if (role === undefined) return { ...schema, response }
  const orNone = isOpen ? ' Without `auth.tokens`, callers on loopback need no token.' : ''
  const needs = `Requires the role \`${role}\`${role === 'admin' ? '' : ' or higher'}.${orNone}`
  const description = [schema.description, needs].filter(Boolean).join(' ')
  return { ...schema, response, description, security: [{ token: [] }] }
}
