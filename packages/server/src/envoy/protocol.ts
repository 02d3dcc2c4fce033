// Envoy's protocol: its definitions and the types of its messages.

import { fileURLToPath } from 'node:url'
import type { ServiceDefinition, UntypedServiceImplementation } from '@grpc/grpc-js'
import { loadSync, type PackageDefinition } from '@grpc/proto-loader'
import { PACKAGE } from '../package-folder.ts'

/** A decoded message. Omitted fields are undefined. Fields have the same names as in the protocol's definitions. */
export interface RateLimitRequest {
  readonly domain?: string
  readonly descriptors?: readonly Descriptor[]
  readonly hits_addend?: number
}

export interface Descriptor {
  readonly entries?: readonly { readonly key?: string; readonly value?: string }[]
  readonly limit?: { readonly requests_per_unit?: number; readonly unit?: number }
  readonly hits_addend?: { readonly value?: number }
  readonly is_negative_hits?: boolean
}

export const OK = 1
export const OVER_LIMIT = 2

export interface RateLimitResponse {
  readonly overall_code: number
  readonly statuses: readonly DescriptorStatus[]
  readonly response_headers_to_add?: readonly { readonly key: string; readonly value: string }[]
  readonly dynamic_metadata?: unknown
}

export interface DescriptorStatus {
  readonly code: number
  readonly current_limit?: {
    readonly name: string
    readonly requests_per_unit: number
    readonly unit: number
  }
  readonly limit_remaining?: number
  readonly duration_until_reset?: { readonly seconds: number }
}

/** Plain data as a `google.protobuf.Struct`. */
export function structOf(fields: Readonly<Record<string, unknown>>): unknown {
  return {
    fields: Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, protoValueOf(value)])),
  }
}

function protoValueOf(value: unknown): unknown {
  if (typeof value === 'string') return { stringValue: value }
  if (typeof value === 'number') return { numberValue: value }
  if (typeof value === 'boolean') return { boolValue: value }
  if (Array.isArray(value)) return { listValue: { values: value.map(protoValueOf) } }
  if (typeof value === 'object' && value !== null) return { structValue: structOf(value as never) }
  return { nullValue: 0 }
}

export const SERVICE_NAME = 'envoy.service.ratelimit.v3.RateLimitService'

/** Stands for a request that can't be decoded. */
export const MALFORMED = Symbol('malformed')

const FOLDER = fileURLToPath(new URL('proto', PACKAGE))

let definitions: PackageDefinition | undefined

/** Loads the official protocol definitions, once. */
export function loadDefinitions(): PackageDefinition {
  definitions ??= loadSync('envoy/service/ratelimit/v3/rls.proto', {
    includeDirs: [FOLDER],
    keepCase: true,
    longs: Number,
  })
  return definitions
}

/** The service. Malformed bytes are passed to the handler as {@link MALFORMED}, so that it returns the right status. */
export function serviceIn(definitions: PackageDefinition): ServiceDefinition<UntypedServiceImplementation> {
  const service = definitions[SERVICE_NAME] as ServiceDefinition<UntypedServiceImplementation>
  const method = service.ShouldRateLimit!
  const requestDeserialize = (bytes: Buffer): unknown => {
    try {
      return method.requestDeserialize(bytes)
    } catch {
      return MALFORMED
    }
  }
  return { ...service, ShouldRateLimit: { ...method, requestDeserialize } }
}
