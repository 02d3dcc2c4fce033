import type { Config } from '../config/schema.ts'
import type { EnvoyOptions, EnvoyServer } from './server.ts'

const DEFAULT_GRPC = '127.0.0.1:8081'

/** Where gRPC is answered; nowhere unless the configuration speaks of it. */
export function grpcAddressOf({ listen, envoy }: Config): string | undefined {
  const { grpc = envoy === undefined ? false : DEFAULT_GRPC } = listen ?? {}
  return grpc === false ? undefined : grpc
}

/** Starts the rate limit service of Envoy where there is to be one: only then is gRPC loaded. */
export async function startEnvoy(
  config: Config,
  options: Omit<EnvoyOptions, 'address'>,
): Promise<EnvoyServer | undefined> {
  const address = grpcAddressOf(config)
  if (address === undefined) return undefined
  const { EnvoyServer } = await import('./server.ts')
  return EnvoyServer.start({ ...options, address })
}
