// Looks up a recorded ban or block in the store.

import { type AnyKey, type Explanation, SlidegateError } from 'slidegate'
import type { Service } from '../service/service.ts'
import type { BanStatus } from './api-types.ts'
import type { BanRecord } from './ban-log.ts'

/**
 * Returns the ban or block in its current state, or undefined if it is over.
 *
 * @throws {StoreUnavailableError}
 */
export async function statusOf(service: Service, record: BanRecord): Promise<BanStatus | undefined> {
  const { limiter, dimension, key, isHashed, type, untilMs } = record
  // A ban can't be looked up without its key.
  if (isHashed) return untilMs === null || untilMs > Date.now() ? record : undefined
  const explained = await explain(service, limiter, dimension === undefined ? key : { [dimension]: key })
  if (explained === undefined) return undefined
  const { atMs, bans, overrides } = explained
  if (type === 'block') {
    const blockedMs = overrides.find((each) => each.dimension === dimension)?.blockedMs
    return blockedMs === undefined ? undefined : { ...record, untilMs: endOf(atMs, blockedMs) }
  }
  const ban = bans.find((each) => each.dimension === dimension)
  if (ban === undefined || ban.blockedMs === 0) return undefined
  const { level, blockedMs, sinceMs = atMs } = ban
  const now = { level, sinceMs, untilMs: endOf(atMs, blockedMs) }
  if (sinceMs === record.sinceMs) return { ...record, ...now }
  // The recorded ban was lifted, and another process has recorded the current one.
  const { limits, denials, withinMs, ...rest } = record
  return { ...rest, ...now }
}

/** Returns the end of a ban or block, or `null` if it never ends. */
export function endOf(atMs: number, blockedMs: number): number | null {
  return blockedMs === Number.POSITIVE_INFINITY ? null : atMs + blockedMs
}

/** Explains a key. Returns undefined if a reload changed the limiter's dimensions and the key no longer fits them. */
async function explain(service: Service, limiter: string, key: AnyKey): Promise<Explanation | undefined> {
  try {
    return await service.get(limiter).reader.explain(key)
  } catch (error) {
    if (error instanceof SlidegateError) return undefined
    throw error
  }
}
