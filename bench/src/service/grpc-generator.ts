import { Client, credentials } from '@grpc/grpc-js'
import { loadDefinitions, OK, SERVICE_NAME } from '../../../packages/server/src/envoy/protocol.ts'
import { anyOf, callers } from '../callers.ts'
import type { Answered } from '../http/generator.ts'
import { serve } from '../workers.ts'

/** A turn of calls of ShouldRateLimit, so many under way at a time, over as many connections as Envoy would have. */
export interface AskedByGrpc {
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

serve<AskedByGrpc, Answered>(async ({ port, inFlight, ms, users }) => {
  const open =
    clients.get(port) ??
    Array.from({ length: CONNECTIONS }, () => {
      // Each has a connection of its own.
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
  const lane = (client: Client) =>
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
          (asked: object) => method.requestSerialize(asked),
          (bytes: Buffer) => method.responseDeserialize(bytes),
          request,
          (error, response) => {
            if (error) return reject(error)
            times.push(performance.now() - sentAt)
            // As HTTP would say it.
            const status = response!.overall_code === OK ? 200 : 429
            statuses[status] = (statuses[status] ?? 0) + 1
            ask()
          },
        )
      }
      ask()
    })
  await Promise.all(Array.from({ length: inFlight }, (_, i) => lane(open[i % CONNECTIONS]!)))
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
