// The OpenAPI description.

import swagger from '@fastify/swagger'
import type { RouteOptions } from 'fastify'
import { VERSION } from '../service/instance.ts'
import type { App } from './context.ts'
import { problemAnswer, SHARED } from './schemas.ts'

/** What any route may answer. */
const EVERYWHERE = {
  403: 'The Origin is not on the list.',
  404: 'There is no such route.',
  421: 'The Host is not on the list.',
  500: 'Something has gone wrong; it is in the log of the service.',
}
const WITH_ROLE = {
  400: 'The request is not as it has to be.',
  401: 'A token is needed, or it is not known.',
  403: 'The token does not allow this, or the Origin is not on the list.',
  404: 'There is no such limiter, or the token does not allow it.',
  503: 'The store gave no answer, or too many requests are under way. Retry-After tells when to ask again.',
}
const WITH_BODY = {
  413: 'The body is longer, or has more requests, than the configuration allows.',
  415: 'The Content-Type is not application/json.',
}

/** Describes the API as OpenAPI 3.1, from the schemas by which requests are checked. */
export async function describeRoutes(app: App): Promise<void> {
  await app.register(swagger, {
    openapi: {
      openapi: '3.1.0',
      info: {
        title: 'slidegate',
        version: VERSION,
        description:
          'An exact rate limiter as a service. Numbers that JSON does not have, such as infinity, are null.',
        license: { name: 'MIT', identifier: 'MIT' },
      },
      tags: [
        { name: 'decisions', description: 'Requests, and what is told of them.' },
        { name: 'reservations', description: 'Charges that are settled or returned later.' },
        { name: 'gateways', description: 'What gateways ask before they let a request pass.' },
        { name: 'admin', description: 'To look at the service while it runs, and to change it.' },
        { name: 'service', description: 'How the service itself is.' },
      ],
      components: {
        securitySchemes: {
          token: {
            type: 'http',
            scheme: 'bearer',
            description:
              'A token of auth.tokens; without these, that of the admin link which the service prints when it starts.',
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
  const orNone = isOpen ? '; without auth.tokens, on loopback, no token' : ''
  const needs = `Needs the role ${role}${role === 'admin' ? '' : ' or more'}${orNone}.`
  const description = [schema.description, needs].filter(Boolean).join(' ')
  return { ...schema, response, description, security: [{ token: [] }] }
}
