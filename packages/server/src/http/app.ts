import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import swagger from '@fastify/swagger'
import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox'
import Fastify, { type FastifyBaseLogger, type FastifyInstance, type FastifyServerOptions } from 'fastify'
import { authenticate } from './authenticate.ts'
import { consumeRoutes } from './consume.ts'
import type { Context } from './context.ts'
import { healthRoutes } from './health.ts'
import { answerErrors } from './problems.ts'

/** With types taken from the schemas of routes. */
export type App = FastifyInstance<
  Server,
  IncomingMessage,
  ServerResponse,
  FastifyBaseLogger,
  TypeBoxTypeProvider
>

/** Certificates, as `node:https` takes them. */
export interface TlsOptions {
  readonly cert: string
  readonly key: string
  readonly ca?: string
  readonly requestCert?: boolean
}

const DEFAULT_BODY_BYTES = 2 ** 20

/** The service over HTTP. It is not listening yet. */
export async function createApp(context: Context, tls?: TlsOptions): Promise<App> {
  const { caps = {} } = context.service.config
  const options: FastifyServerOptions = {
    bodyLimit: caps.bodyBytes ?? DEFAULT_BODY_BYTES,
    // A request has to be there whole within this time, in ms.
    requestTimeout: 30_000,
    // Requests under way are answered, also those that come on an open connection while it stops.
    forceCloseConnections: 'idle',
    return503OnClosing: false,
    ...(tls && { https: tls }),
  }
  const app = Fastify(options).withTypeProvider<TypeBoxTypeProvider>() as unknown as App
  await app.register(swagger, { openapi: { openapi: '3.1.0', info: { title: 'slidegate', version: '1' } } })
  answerErrors(app, context)
  authenticate(app, context)
  healthRoutes(app, context)
  consumeRoutes(app, context)
  return app
}
