import { Server, ServerCredentials } from '@grpc/grpc-js'
import { pino } from 'pino'
import { loadConfig } from '../../../packages/server/src/config/load.ts'
import { loadDefinitions, OK, serviceIn } from '../../../packages/server/src/envoy/protocol.ts'
import { ConsumeBody } from '../../../packages/server/src/http/consume.ts'
import { startService } from '../../../packages/server/src/service/running.ts'
import { serve } from '../workers.ts'
import { configFile, LIMIT, portIn } from './config-file.ts'
import { CONSTANT_PATH, type Ports, type ToService } from './told.ts'

// Before the framework is loaded.
process.env.NODE_ENV = 'production'

/** A decision that nobody has made. */
const CONSTANT = {
  ...{ limiter: 'api', allowed: true, cost: 1, remaining: LIMIT - 1, retryAfterMs: 0, resetAfterMs: 60_000 },
  ...{ deniedBy: [], source: 'store', atMs: 1_700_000_000_000 },
  limits: [
    {
      ...{ name: `${LIMIT}-per-1m`, limit: LIMIT, windowMs: 60_000, precisionMs: 1, shadow: false },
      ...{ allowed: true, remaining: LIMIT - 1, retryAfterMs: 0, resetAfterMs: 60_000 },
    },
  ],
}

/** As it is sent: byte for byte what a real one would be. */
const CONSTANT_TEXT = JSON.stringify(CONSTANT)
const CONSTANT_HEADERS = {
  'content-type': 'application/json; charset=utf-8',
  'RateLimit-Policy': `"${LIMIT}-per-1m";q=${LIMIT};w=60`,
  RateLimit: `"${LIMIT}-per-1m";r=${LIMIT - 1};t=60`,
}

/** The same as Envoy is told it. */
const CONSTANT_RESPONSE = {
  overall_code: OK,
  statuses: [
    {
      code: OK,
      current_limit: { requests_per_unit: LIMIT, unit: 'MINUTE' },
      limit_remaining: LIMIT - 1,
      duration_until_reset: { seconds: 60, nanos: 0 },
    },
  ],
  response_headers_to_add: [
    { key: 'RateLimit-Policy', value: `"user";q=${LIMIT};w=60` },
    { key: 'RateLimit', value: `"user";r=${LIMIT - 1};t=60` },
  ],
}

serve<ToService, Ports | number>(async (told) => {
  if (told === 'cpu seconds') {
    const { user, system } = process.cpuUsage()
    return (user + system) / 1e6
  }
  const running = await startService({
    loaded: loadConfig(configFile(told.store)),
    log: pino({ level: 'silent' }),
    environment: {},
    // The same server, the same checks, and the answer is known.
    extend: (app) =>
      app.post(CONSTANT_PATH, { config: { role: 'check' }, schema: { body: ConsumeBody } }, (_, reply) =>
        reply.headers(CONSTANT_HEADERS).send(CONSTANT_TEXT),
      ),
  })
  return {
    http: portIn(running.httpUrl),
    grpc: portIn(running.grpcAddress!),
    constantGrpc: await constantGrpc(),
  }
})

function constantGrpc(): Promise<number> {
  const server = new Server()
  server.addService(serviceIn(loadDefinitions()), {
    ShouldRateLimit: (_: unknown, callback: (error: null, response: object) => void) =>
      callback(null, CONSTANT_RESPONSE),
  })
  return new Promise((resolve, reject) => {
    server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, port) =>
      error ? reject(error) : resolve(port),
    )
  })
}
