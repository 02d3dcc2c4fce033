// START HERE: the HTTP server with all its routes.

import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox'
import { Ajv, type AnySchema, type ValidateFunction } from 'ajv'
import Fastify, { type FastifyServerOptions } from 'fastify'
import type { TlsOptions } from '../service/listeners.ts'
import type { TraceHeaders } from '../tracing/tracing.ts'
import { actionRoutes } from './actions.ts'
import { consumeRoutes } from './consume.ts'
import type { App, Context } from './context.ts'
import { describeRoutes } from './description.ts'
import { guardEntrance } from './entrance.ts'
import { forwardAuthRoutes } from './forward-auth.ts'
import { healthRoutes } from './health.ts'
import { holdRoutes } from './holds.ts'
import { liveRoutes } from './live.ts'
import { pageRoutes } from './page.ts'
import { peekRoutes } from './peek.ts'
import { answerClientError, answerErrors, errorBodyOf, sendProblem } from './problems.ts'
import { reservationRoutes } from './reservations.ts'
import { storeRoutes } from './store.ts'
import { validationError } from './validation.ts'
import { captureRoutes, viewRoutes } from './views.ts'
import { waitRoutes } from './wait.ts'

/** For so long a client may take to say what it wants, and to send all of it. */
const HEADERS_MS = 10_000
const REQUEST_MS = 30_000
/** How often that is looked after. */
const CHECK_MS = 1000

/** The schemas are ours, and to make their code smaller takes longer than it saves. */
const QUICK = { validateSchema: false, code: { optimize: false } } as const

/** What was sent is taken as it is, or not at all. */
const bodies = new Ajv({ discriminator: true, ...QUICK })
/** All that a URL has are words. */
const words = new Ajv({ coerceTypes: true, useDefaults: true, ...QUICK })

const HANDSHAKE_MS = 10_000
const DEFAULT_BODY_BYTES = 2 ** 19

/** The service over HTTP. It is not listening yet. */
export async function createApp(context: Context, tls?: TlsOptions): Promise<App> {
  const { caps = {} } = context.service.config
  const server = { headersTimeout: HEADERS_MS, connectionsCheckingInterval: CHECK_MS }
  const options: FastifyServerOptions = {
    bodyLimit: caps.bodyBytes ?? DEFAULT_BODY_BYTES,
    requestTimeout: REQUEST_MS,
    // Requests under way are answered, also those that come on an open connection while it stops.
    forceCloseConnections: 'idle',
    return503OnClosing: false,
    schemaErrorFormatter: validationError,
    clientErrorHandler: answerClientError,
    frameworkErrors: (error, _request, reply) => {
      sendProblem(reply, errorBodyOf(error))
    },
    ...(tls === undefined
      ? { http: server }
      : {
          https: {
            ...server,
            ...tls,
            handshakeTimeout: HANDSHAKE_MS,
            ...(tls.ca !== undefined && { requestCert: true, rejectUnauthorized: true }),
          },
        }),
  }
  const app = Fastify(options).withTypeProvider<TypeBoxTypeProvider>() as unknown as App
  // Web pages may send text to any origin without being asked.
  app.removeContentTypeParser('text/plain')
  app.setValidatorCompiler(({ schema, httpPart }) =>
    checkedLater(httpPart === 'body' ? bodies : words, schema),
  )
  // Schemas of answers describe them; they are not what writes them.
  app.setSerializerCompiler(() => JSON.stringify)
  await describeRoutes(app)
  guardEntrance(app, context)
  answerErrors(app, context)
  traceRequests(app, context)
  healthRoutes(app, context)
  forwardAuthRoutes(app, context)
  consumeRoutes(app, context)
  peekRoutes(app, context)
  reservationRoutes(app, context)
  waitRoutes(app, context)
  holdRoutes(app, context)
  storeRoutes(app, context)
  viewRoutes(app, context)
  actionRoutes(app, context)
  liveRoutes(app, context)
  captureRoutes(app, context)
  pageRoutes(app)
  return app
}

/** Spans of a request are below that of whoever asks: from where its body is read on, which comes from elsewhere. */
function traceRequests(app: App, { tracing }: Context): void {
  if (tracing === undefined) return
  app.addHook('preHandler', ({ headers }, _reply, done) => tracing.within(headers as TraceHeaders, done))
}

/** Checks by a schema that is compiled when it is first asked for: all of them together take longer than the rest of a start. */
function checkedLater(ajv: Ajv, schema: AnySchema): ValidateFunction {
  let compiled: ValidateFunction | undefined
  const check = (data: unknown): boolean => {
    compiled ??= ajv.compile(schema)
    const isValid = compiled(data) as boolean
    check.errors = compiled.errors
    return isValid
  }
  check.errors = undefined as ValidateFunction['errors']
  return check as ValidateFunction
}
