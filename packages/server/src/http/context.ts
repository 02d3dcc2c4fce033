// The services that routes use.

import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox'
import type { FastifyBaseLogger, FastifyInstance } from 'fastify'
import type { Logger } from 'pino'
import type { Admin } from '../admin/admin.ts'
import type { Capture } from '../capture/capture.ts'
import type { Metrics } from '../metrics/metrics.ts'
import type { Configuration } from '../service/configuration.ts'
import type { Gatekeeper } from '../service/gatekeeper.ts'
import type { Processes } from '../service/instance.ts'
import type { Readiness } from '../service/readiness.ts'
import type { Service } from '../service/service.ts'
import type { Tracing } from '../tracing/tracing.ts'

/** The Fastify instance, which infers types from route schemas. */
export type App = FastifyInstance<
  Server,
  IncomingMessage,
  ServerResponse,
  FastifyBaseLogger,
  TypeBoxTypeProvider
>

/** The services that routes use. Read `service.config` for each request, because a reload replaces it. */
export interface Context {
  readonly service: Service
  readonly gatekeeper: Gatekeeper
  readonly configuration: Configuration
  readonly readiness: Readiness
  readonly metrics: Metrics
  readonly processes: Processes
  readonly admin: Admin
  readonly tracing: Tracing | undefined
  readonly capture: Capture
  readonly log: Logger
}
