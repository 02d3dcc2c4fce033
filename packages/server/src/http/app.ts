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
import { historyRoutes } from './history.ts'
import { holdRoutes } from './holds.ts'
import { keyRoutes } from './keys.ts'
import { liveRoutes } from './live.ts'
import { pageRoutes } from './page.ts'
import { peekRoutes } from './peek.ts'
import { answerClientError, answerErrors, errorBodyOf, sendProblem } from './problems.ts'
import { reservationRoutes } from './reservations.ts'
import { storeRoutes } from './store.ts'
import { validationError } from './validation.ts'
import { captureRoutes, viewRoutes } from './views.ts'
import { waitRoutes } from './wait.ts'

/** How long a client may take to send the headers, and the whole request. */
const HEADERS_MS = 10_000
const REQUEST_MS = 30_000
/** How often these timeouts are checked. */
const CHECK_MS = 1000

/** These schemas are our own, so they need no validation. Optimizing their code takes longer than it saves. */
const QUICK = { validateSchema: false, code: { optimize: false } } as const

/** Values in bodies aren't converted to the expected type. */
const bodies = new Ajv({ discriminator: true, ...QUICK })
/** URL parameters are strings, so they are converted to the expected type. */
const words = new Ajv({ coerceTypes: true, useDefaults: true, ...QUICK })

const HANDSHAKE_MS = 10_000
const DEFAULT_BODY_BYTES = 2 ** 19

/** Creates the HTTP server. The server isn't listening yet. */
export async function createApp(context: Context, tls?: TlsOptions): Promise<App> {
  const { caps = {} } = context.service.config
  const server = { headersTimeout: HEADERS_MS, connectionsCheckingInterval: CHECK_MS }
  const options: FastifyServerOptions = {
    bodyLimit: caps.bodyBytes ?? DEFAULT_BODY_BYTES,
    requestTimeout: REQUEST_MS,
    // While the server is stopping, it still answers requests, including new ones on open connections.
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
  // Rejects text/plain, which browsers send to any origin without a preflight.
  app.removeContentTypeParser('text/plain')
  app.setValidatorCompiler(({ schema, httpPart }) =>
    checkedLater(httpPart === 'body' ? bodies : words, schema),
  )
  // Response schemas are only documentation. JSON.stringify serializes the responses.
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
  keyRoutes(app, context)
  liveRoutes(app, context)
  historyRoutes(app, context)
  captureRoutes(app, context)
  pageRoutes(app)
  return app
}

/** Makes spans children of the caller's span. Runs after the body has been read: reading it loses the context. */
function traceRequests(app: App, { tracing }: Context): void {
  if (tracing === undefined) return
  app.addHook('preHandler', ({ headers }, _reply, done) => tracing.within(headers as TraceHeaders, done))
}

/** Compiles a schema on first use. Compiling all of them takes longer than the rest of the startup. */
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
