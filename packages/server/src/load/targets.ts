// Targets of a ramp: the HTTP API, Envoy's protocol, the library in this process.

import * as http from 'node:http'
import * as https from 'node:https'
import { type ChannelCredentials, Client, credentials, Metadata } from '@grpc/grpc-js'
import { createLimiter, type Limit, memoryStore } from 'slidegate'
import { redisStore } from 'slidegate/redis'
import { ClientError, EXIT, type Target, urlAt } from '../client/service-client.ts'
import { loadDefinitions, OK, type RateLimitResponse, SERVICE_NAME } from '../envoy/protocol.ts'
import type { Send } from './ramp.ts'

/** A place to send requests to. */
export interface LoadTarget {
  readonly send: Send
  close(): Promise<void> | void
}

const RESPONSE_MS = 10_000

/** A response contains this text if the store made the decision. */
const FROM_STORE = '"source":"store"'

/** Sends requests to the HTTP API. Requests that are waiting for a free connection count as in flight. */
export function httpTarget(target: Target, bodies: readonly string[], connections: number): LoadTarget {
  const { url, token, ca, cert, key } = target
  const { Agent, request } = url.protocol === 'https:' ? https : http
  const agent = new Agent({ keepAlive: true, maxSockets: connections })
  const to = urlAt(url, '/v1/consume')
  const options = { method: 'POST', agent, ca, cert, key }
  const texts = bodies.map((body) => ({
    body,
    headers: {
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(body),
      ...(token !== undefined && { authorization: `Bearer ${token}` }),
    },
  }))
  return {
    send: (i) =>
      new Promise((resolve, reject) => {
        const { body, headers } = texts[i % texts.length]!
        const sent = request(to, { ...options, headers }, (response) => {
          const { statusCode: status } = response
          let text = ''
          response.setEncoding('latin1').on('data', (chunk) => {
            text += chunk
          })
          response.once('error', reject).once('end', () => {
            if (status !== 200 && status !== 429) reject(new Error(`HTTP ${status}`))
            else if (text.includes(FROM_STORE)) resolve(status === 200)
            else reject(new Error('decided without the store'))
          })
        })
        // A socket's timeout doesn't apply to a request that is waiting for a connection.
        const late = setTimeout(() => {
          const error = new Error(`no response within ${RESPONSE_MS / 1000} s`)
          reject(error)
          sent.destroy(error)
        }, RESPONSE_MS)
        sent
          .once('close', () => clearTimeout(late))
          .once('error', reject)
          .end(body)
      }),
    close: () => agent.destroy(),
  }
}

interface Method {
  readonly path: string
  requestSerialize(request: object): Buffer
  responseDeserialize(bytes: Buffer): RateLimitResponse
}

/** Number of gRPC connections. Several are typical, because Envoy opens one per worker thread. */
const GRPC_CONNECTIONS = 2

/**
 * Connects to an Envoy rate limit service, and checks that a limit applies.
 *
 * @param descriptor the key of the only entry in each descriptor
 */
export async function grpcTarget(
  address: string,
  domain: string,
  descriptor: string,
  keys: readonly string[],
  { token, ca, cert, key }: Omit<Target, 'url'>,
): Promise<LoadTarget> {
  const isTls = ca !== undefined || cert !== undefined
  const bytesOf = (pem: string | undefined) => (pem === undefined ? null : Buffer.from(pem))
  const by: ChannelCredentials = isTls
    ? credentials.createSsl(bytesOf(ca), bytesOf(key), bytesOf(cert))
    : credentials.createInsecure()
  const clients = Array.from(
    { length: GRPC_CONNECTIONS },
    () => new Client(address, by, { 'grpc.use_local_subchannel_pool': 1 }),
  )
  const metadata = new Metadata()
  if (token !== undefined) metadata.set('authorization', `Bearer ${token}`)
  const definitions = loadDefinitions() as unknown as Record<string, { readonly ShouldRateLimit: Method }>
  const method = definitions[SERVICE_NAME]!.ShouldRateLimit
  const messages = keys.map((value) =>
    method.requestSerialize({ domain, descriptors: [{ entries: [{ key: descriptor, value }] }] }),
  )
  const ask = (i: number): Promise<RateLimitResponse> =>
    new Promise((resolve, reject) => {
      clients[i % GRPC_CONNECTIONS]!.makeUnaryRequest(
        method.path,
        (message: Buffer) => message,
        method.responseDeserialize,
        messages[i % messages.length]!,
        metadata,
        { deadline: Date.now() + RESPONSE_MS },
        (error, response) => (error ? reject(error) : resolve(response!)),
      )
    })
  const close = () => {
    for (const client of clients) client.close()
  }
  try {
    // Opens both connections before the first step.
    const [first] = await Promise.all([ask(0), ask(1)])
    if (first?.statuses[0]?.current_limit == null) {
      throw new ClientError(
        EXIT.usage,
        `no limit in the domain "${domain}" applies to the descriptor "${descriptor}"; set --descriptor to a key that the domain limits`,
      )
    }
  } catch (error) {
    close()
    if (error instanceof ClientError) throw error
    throw new ClientError(EXIT.unreachable, `cannot use ${address}: ${(error as Error).message}`)
  }
  return { send: async (i) => (await ask(i)).overall_code === OK, close }
}

/**
 * A limiter in this process.
 *
 * @param redis the URL of the limiter's store. Default: a store in memory
 */
export async function libraryTarget(
  name: string,
  limit: Limit,
  keys: readonly string[],
  redis: string | undefined,
): Promise<LoadTarget> {
  const store = redis === undefined ? memoryStore() : redisStore(redis)
  const limiter = createLimiter({ name, limits: [limit], store })
  const close = async () => {
    limiter.close()
    await store.close()
  }
  try {
    if ('ready' in store) await store.ready()
    await limiter.peek(keys[0]!)
  } catch (error) {
    await close()
    throw error
  }
  return { send: async (i) => (await limiter.consume(keys[i % keys.length]!)).allowed, close }
}
