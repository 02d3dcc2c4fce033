import { Client, credentials } from '@grpc/grpc-js'
import { loadDefinitions, OK, SERVICE_NAME } from '../../../packages/server/src/envoy/protocol.ts'
import { anyOf, callers } from '../callers.ts'
import type { LoadResult } from '../http/generator.ts'
import { serve } from '../workers.ts'

/** A turn of ShouldRateLimit calls, over the number of connections that Envoy opens. */
export interface GrpcLoadRequest {
  readonly port: number
  readonly inFlight: number
  readonly ms: number
  readonly users: number
}

interface Method {
  readonly path: string
  requestSerialize(request: object): Buffer
  responseDeserialize(bytes: Buffer): { readonly overall_code: number }
}

const CONNECTIONS = 2

const clients = new Map<number, readonly Client[]>()
const method = (loadDefinitions()[SERVICE_NAME] as unknown as { readonly ShouldRateLimit: Method })
  .ShouldRateLimit

serve<GrpcLoadRequest, LoadResult>(async ({ port, inFlight, ms, users }) => {
  const open =
    clients.get(port) ??
    Array.from({ length: CONNECTIONS }, () => {
      // Gives each client its own connection.
      return new Client(`127.0.0.1:${port}`, credentials.createInsecure(), {
        'grpc.use_local_subchannel_pool': 1,
      })
    })
  clients.set(port, open)
  const names = callers(users)
  const pick = anyOf(users)
  const statuses: Record<number, number> = {}
  const times: number[] = []
  const start = performance.now()
  const run = (client: Client) =>
    new Promise<void>((resolve, reject) => {
      const ask = () => {
        const sentAt = performance.now()
        if (sentAt >= start + ms) return resolve()
        const request = {
          domain: 'bench',
          descriptors: [{ entries: [{ key: 'user', value: names[pick()]! }] }],
        }
        client.makeUnaryRequest(
          method.path,
          (message: object) => method.requestSerialize(message),
          (bytes: Buffer) => method.responseDeserialize(bytes),
          request,
          (error, response) => {
            if (error) return reject(error)
            times.push(performance.now() - sentAt)
            // Counts the code as an HTTP status.
            const status = response!.overall_code === OK ? 200 : 429
            statuses[status] = (statuses[status] ?? 0) + 1
            ask()
          },
        )
      }
      ask()
    })
  await Promise.all(Array.from({ length: inFlight }, (_, i) => run(open[i % CONNECTIONS]!)))
  const seconds = (performance.now() - start) / 1000
  const sorted = Float64Array.from(times).sort()
  return {
    requests: sorted.length,
    seconds,
    meanMs: sorted.reduce((total, took) => total + took, 0) / sorted.length,
    p99Ms: sorted[Math.floor(0.99 * sorted.length)]!,
    statuses,
  }
})
