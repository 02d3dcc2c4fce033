// Checks and keys that every load test starts with.

import { randomBytes } from 'node:crypto'
import { UsageError } from '../../../replay/src/errors.ts'
import { printable } from '../../../replay/src/text.ts'
import { ServiceClient, type Target } from '../client/service-client.ts'
import { isLoopback } from '../service/listeners.ts'

/** @throws {UsageError} */
export function mustBeAllowed(host: string, yes: boolean | undefined): void {
  if (isLoopback(host.replace(/^\[|\]$/g, '')) || yes === true) return
  throw new UsageError(`${printable(host)} is another machine; pass --yes to run a load test against it`)
}

/** Returns random keys. */
export function keysOf(count: number): string[] {
  const run = randomBytes(4).toString('hex')
  return Array.from({ length: count }, (_, i) => `bench-${run}-${i}`)
}

/** Sends one request first. If all requests would fail, a single error is easier to understand. */
export async function tryOnce(target: Target, limiter: string, key: string): Promise<void> {
  await new ServiceClient(target).decide('/v1/peek', { limiter, key })
}
