import { Server, ServerCredentials } from '@grpc/grpc-js'
import { pino } from 'pino'
import { loadConfig } from '../../../packages/server/src/config/load.ts'
import { loadDefinitions, OK, serviceIn } from '../../../packages/server/src/envoy/protocol.ts'
import { ConsumeBody } from '../../../packages/server/src/http/consume.ts'
import { startService } from '../../../packages/server/src/service/running.ts'
import { serve } from '../workers.ts'
import { configFile, LIMIT, portIn } from './config-file.ts'
import { CONSTANT_PATH, type Ports, type ToService } from './messages.ts'

// The framework reads NODE_ENV when it loads.
process.env.NODE_ENV = 'production'

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

/** The response, with the same bytes as a real response. */
const CONSTANT_TEXT = JSON.stringify(CONSTANT)
const CONSTANT_HEADERS = {
  'content-type': 'application/json; charset=utf-8',
  'RateLimit-Policy': `"${LIMIT}-per-1m";q=${LIMIT};w=60`,
  RateLimit: `"${LIMIT}-per-1m";r=${LIMIT - 1};t=60`,
}

/** The same decision as a response to Envoy. */
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

serve<ToService, Ports | number>(async (message) => {
  if (message === 'cpu seconds') {
    const { user, system } = process.cpuUsage()
    return (user + system) / 1e6
  }
  const running = await startService({
    loaded: loadConfig(configFile(message.store, message.limit)),
    log: pino({ level: 'silent' }),
    environment: {},
    // The same server with the same checks, and a constant response.
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
