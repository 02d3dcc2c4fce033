import { fileURLToPath } from 'node:url'
import type { ServiceDefinition, UntypedServiceImplementation } from '@grpc/grpc-js'
import { loadSync, type PackageDefinition } from '@grpc/proto-loader'

export const SERVICE_NAME = 'envoy.service.ratelimit.v3.RateLimitService'

/** In place of a request that cannot be decoded. */
export const MALFORMED = Symbol('malformed')

const FOLDER = fileURLToPath(new URL('../../proto', import.meta.url))

/** The protocol, by its official definitions. */
export function loadDefinitions(): PackageDefinition {
  return loadSync('envoy/service/ratelimit/v3/rls.proto', {
    includeDirs: [FOLDER],
    keepCase: true,
    longs: Number,
  })
}

/** The service; bytes that are no message are told to the handler, which has the right answer. */
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
