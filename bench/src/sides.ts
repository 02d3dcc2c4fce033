import assert from 'node:assert/strict'
import type { Cluster, Redis } from 'ioredis'
import { createLimiter, type Decision, type Limiter, slidingWindow } from 'slidegate'
import { redisStore } from 'slidegate/redis'
import { Audit } from './audit.ts'
import { anyOf } from './callers.ts'
import { closedLoop, type Extent, type Load } from './load.ts'
import type { PeerLimiter, Policy } from './peers/peer.ts'
import { type Floor, floorKeys } from './redis/floor.ts'
import type { Role } from './report/plot.ts'

/** Whether all requests of a comparison are admitted or denied. */
export type Outcome = 'admitted' | 'denied'

export interface Side {
  readonly name: string
  readonly role: Role
  /** Keeps requests for random keys in flight. Every answer is checked. */
  load(inFlight: number, extent: Extent): Promise<Load>
  close?(): unknown
}

/** Maximum number of keys whose decisions are all verified. */
const AUDITED_KEYS = 16

/** Long enough to avoid timeouts on a busy machine. */
export const PATIENCE_MS = 60_000

export async function slidegateSide(
  redis: Redis | Cluster,
  { limit, windowMs }: Policy,
  keys: readonly string[],
  outcome: Outcome,
  /** Whether other processes use the same keys, so that decisions can't be verified. */
  { isShared = false }: { readonly isShared?: boolean } = {},
): Promise<Side> {
  const limiter = createLimiter({
    name: 'bench',
    limits: [slidingWindow({ limit, window: windowMs })],
    store: redisStore(redis),
    timeoutMs: PATIENCE_MS,
  })
  if (outcome === 'denied') await useUp((key) => isAllowed(limiter, key), keys, limit)
  const audited = outcome === 'admitted' && !isShared ? Math.min(keys.length, AUDITED_KEYS) : 0
  const audits = Array.from({ length: audited }, () => new Audit(limit, windowMs))
  const pick = anyOf(keys.length)
  const ask = (caller: number) => limiter.consume(keys[caller]!)
  const check = outcome === 'admitted' ? isAdmitted(audits) : isDenied(windowMs)
  return {
    name: 'slidegate',
    role: 'ours',
    async load(inFlight, extent) {
      const load = await closedLoop(inFlight, extent, { pick, ask, check })
      for (const audit of audits) audit.verify()
      return load
    },
    close: () => limiter.close(),
  }
}

async function isAllowed(limiter: Limiter, key: string): Promise<boolean> {
  return (await limiter.consume(key)).allowed
}

export async function peerSide(
  name: string,
  peer: PeerLimiter,
  { limit }: Policy,
  keys: readonly string[],
  outcome: Outcome,
): Promise<Side> {
  if (outcome === 'denied') await useUp((key) => peer.decide(key), keys, limit)
  const pick = anyOf(keys.length)
  const ask = (caller: number) => peer.decide(keys[caller]!)
  const isRight = outcome === 'admitted'
  const check = (isAdmitted: boolean) => {
    if (isAdmitted !== isRight) throw new Error(`${name} decided wrongly: expected ${outcome}`)
  }
  return {
    name,
    role: 'peer',
    load: (inFlight, extent) => closedLoop(inFlight, extent, { pick, ask, check }),
    close: () => peer.close?.(),
  }
}

export function floorSide({ name, slug, ask, isAnswer }: Floor, keys: readonly string[]): Side {
  const names = floorKeys(keys, slug)
  const pick = anyOf(keys.length)
  const askOne = (caller: number) => ask(names[caller]!)
  const check = (answer: unknown) => {
    if (!isAnswer(answer)) throw new Error(`Unexpected reply of ${name}: ${answer}`)
  }
  return {
    name,
    role: 'floor',
    load: (inFlight, extent) => closedLoop(inFlight, extent, { pick, ask: askOne, check }),
  }
}

/** Uses up the limit of each key. */
async function useUp(
  decide: (key: string) => Promise<boolean>,
  keys: readonly string[],
  limit: number,
): Promise<void> {
  for (let i = 0; i < limit; i++) {
    const answers = await Promise.all(keys.map(decide))
    assert(answers.every((isAdmitted) => isAdmitted))
  }
}

/** Checks admissions. Records the first keys' admissions, to verify them after the measurement. */
function isAdmitted(audits: readonly Audit[]): (decision: Decision, caller: number) => void {
  return (decision, caller) => {
    if (!decision.allowed || decision.source !== 'store')
      throw new Error(`Expected an admission, got ${show(decision)}`)
    if (caller < audits.length) audits[caller]!.record(decision)
  }
}

/** Checks denials and their `retryAfterMs`. */
function isDenied(windowMs: number): (decision: Decision) => void {
  return (decision) => {
    const { allowed, retryAfterMs, source } = decision
    if (allowed || source !== 'store' || !(retryAfterMs > 0 && retryAfterMs <= windowMs)) {
      throw new Error(`Expected a denial, got ${show(decision)}`)
    }
  }
}

function show(decision: Decision): string {
  return JSON.stringify(decision)
}
