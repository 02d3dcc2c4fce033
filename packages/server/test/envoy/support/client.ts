import { fileURLToPath } from 'node:url'
import {
  type CallOptions,
  type ChannelCredentials,
  Client,
  type ClientOptions,
  credentials,
  type deserialize,
  Metadata,
  type ServiceError,
  type serialize,
} from '@grpc/grpc-js'
import { loadSync } from '@grpc/proto-loader'

/** The official definitions, loaded as another client would. */
const definitions = loadSync('envoy/service/ratelimit/v3/rls.proto', {
  includeDirs: [fileURLToPath(new URL('../../../proto', import.meta.url))],
  longs: Number,
  enums: String,
  defaults: true,
})

interface MethodDefinition {
  readonly path: string
  readonly requestSerialize: serialize<unknown>
  readonly responseDeserialize: deserialize<unknown>
}

export const METHOD = (
  definitions['envoy.service.ratelimit.v3.RateLimitService'] as unknown as Record<string, MethodDefinition>
).ShouldRateLimit!

/** A descriptor in short form. It has the entries in order, and `hits`, `limit` and `negative` as symbols. */
export type Entries = Readonly<Record<string, string>>

export interface LongDescriptor {
  readonly entries: readonly { readonly key: string; readonly value?: string }[]
  readonly hitsAddend?: { readonly value: number }
  readonly limit?: { readonly requestsPerUnit: number; readonly unit: string | number }
  readonly isNegativeHits?: boolean
}

export interface Status {
  readonly code: 'OK' | 'OVER_LIMIT' | 'UNKNOWN'
  readonly currentLimit: {
    readonly name: string
    readonly requestsPerUnit: number
    readonly unit: string
  } | null
  readonly limitRemaining: number
  readonly durationUntilReset: { readonly seconds: number; readonly nanos: number } | null
}

export interface Response {
  readonly overallCode: 'OK' | 'OVER_LIMIT' | 'UNKNOWN'
  readonly statuses: readonly Status[]
  readonly responseHeadersToAdd: readonly { readonly key: string; readonly value: string }[]
  // biome-ignore lint/suspicious/noExplicitAny: any struct
  readonly dynamicMetadata: any
}

interface AskOptions extends CallOptions {
  readonly hits?: number
  readonly token?: string
  /** Additional metadata. */
  readonly more?: Readonly<Record<string, string>>
}

export interface RateLimitClient extends Disposable {
  ask(
    domain: string,
    descriptors: readonly (Entries | LongDescriptor)[],
    options?: AskOptions,
  ): Promise<Response>
  /** Sends raw bytes. */
  send(bytes: Uint8Array, options?: AskOptions): Promise<Response>
  readonly raw: Client
}

export function rateLimitClient(
  address: string,
  by: ChannelCredentials = credentials.createInsecure(),
  options: ClientOptions = {},
): RateLimitClient {
  const raw = new Client(address, by, options)
  const call = (
    serialize: serialize<unknown>,
    message: unknown,
    { token, hits: _, more = {}, ...options }: AskOptions,
  ): Promise<Response> =>
    new Promise((resolve, reject) => {
      const metadata = new Metadata()
      if (token !== undefined) metadata.set('authorization', `Bearer ${token}`)
      for (const [name, value] of Object.entries(more)) metadata.set(name, value)
      raw.makeUnaryRequest(
        METHOD.path,
        serialize,
        METHOD.responseDeserialize as deserialize<Response>,
        message,
        metadata,
        options,
        (error: ServiceError | null, response?: Response) => (error ? reject(error) : resolve(response!)),
      )
    })
  return {
    raw,
    ask: (domain, descriptors, options = {}) =>
      call(
        METHOD.requestSerialize,
        { domain, descriptors: descriptors.map(longOf), hitsAddend: options.hits ?? 0 },
        options,
      ),
    send: (bytes, options = {}) => call((message) => message as Buffer, Buffer.from(bytes), options),
    [Symbol.dispose]: () => raw.close(),
  }
}

function longOf(descriptor: Entries | LongDescriptor): LongDescriptor {
  if (Array.isArray(descriptor.entries)) return descriptor as LongDescriptor
  return { entries: Object.entries(descriptor as Entries).map(([key, value]) => ({ key, value })) }
}
