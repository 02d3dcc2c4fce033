import { CLUSTER_FAULTS, stopCluster } from './cluster-faults.ts'
import type { Fault } from './fault.ts'
import { PROXY_FAULTS } from './proxy-faults.ts'
import { SENTINEL_FAULTS, stopSentinel } from './sentinel-faults.ts'
import { SERVER_FAULTS } from './server-faults.ts'

export const FAULTS: readonly Fault[] = [
  ...SERVER_FAULTS,
  ...PROXY_FAULTS,
  ...SENTINEL_FAULTS,
  ...CLUSTER_FAULTS,
]

/** Stops the servers that several faults share. */
export async function stopShared(): Promise<void> {
  await Promise.all([stopSentinel(), stopCluster()])
}
