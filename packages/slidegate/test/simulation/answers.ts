import { type Decision, SlidegateError, type Source, StoreUnavailableError } from '../../src/index.ts'
import { type CallerRequest, wordsOf, wordsOfAnswer } from './caller-request.ts'
import type { World } from './world.ts'

/** A timer that fires early is set again, which takes another iteration of the loop. A blocked loop gets a grace period. */
const SLACK_MS = 4
const GRACE_MS = 8

/** How far a timestamp may be ahead of the store's clock. */
const AHEAD_MS = 1000

/** The longest lease, which makes windows longer. */
const LEASE_MS = 100

const MIN_PAUSE_MS = 100

const EXACT: readonly (Source | undefined)[] = ['store', 'lease', 'denyCache']

/** Checks that an answer is plausible on its own. */
export function expectAnswer(world: World, request: CallerRequest): void {
  const { of, error, decision, isRefused, mustBeExact, returned = 0, cost } = request
  const expect = (holds: boolean, otherwise: () => string) =>
    world.expect(holds, () => `${wordsOf(request)}: ${otherwise()}: ${wordsOfAnswer(request)}`)
  if (isRefused) {
    expect(error instanceof SlidegateError && error.code === 'closed', () => 'the limiter is closed')
    return
  }
  expectInTime(world, request, expect)
  if (error !== undefined) {
    const isUnavailable = error instanceof StoreUnavailableError
    world.count(`error ${isUnavailable ? error.reason : error}`)
    expect(isUnavailable, () => 'another error')
    expect(
      of.policy.onStoreError === 'throw' || decidesNothing(request),
      () => `an error with ${of.policy.onStoreError}`,
    )
  }
  expect(returned <= cost, () => 'more returned than charged')
  if (mustBeExact) expect(EXACT.includes(decision?.source), () => 'the servers are back')
  if (decision === undefined) return
  world.count(`${decision.allowed ? 'allowed' : 'denied'} by ${decision.source}`)
  expect(isSourceRight(decision, request), () => `with ${of.policy.onStoreError}`)
  const isCharged = decision.source === 'store' || decision.source === 'lease'
  if (isCharged && decision.allowed && request.question === 'consume')
    expect(request.execution !== undefined && request.isLate === false, () => 'not charged')
  expectWaits(request, decision, expect)
}

type Expect = (holds: boolean, otherwise: () => string) => void

function decidesNothing({ question }: CallerRequest): boolean {
  return question !== 'consume' && question !== 'peek'
}

function expectInTime({ loop }: World, request: CallerRequest, expect: Expect): void {
  const { timeoutMs } = request.of.policy
  const { error } = request
  const tookMs = loop.nowMs - request.atMs
  const blockedMs = loop.stalledMs - request.stalledMs
  // Earlier deadlines may be delayed by the block too.
  const graceMs = request.atMs - loop.stalledAtMs <= timeoutMs + GRACE_MS ? GRACE_MS : 0
  expect(
    tookMs <= timeoutMs + blockedMs + graceMs + SLACK_MS,
    () => `took ${tookMs} ms, of which the loop was blocked for ${blockedMs}`,
  )
  const isTimeout = error instanceof StoreUnavailableError && error.reason === 'timeout'
  // The deadline counts from the start of the task that made the request.
  const waitedMs = tookMs + request.stalledHereMs
  expect(!isTimeout || waitedMs >= timeoutMs, () => `timed out after ${tookMs} ms`)
}

function isSourceRight({ source, allowed }: Decision, { of }: CallerRequest): boolean {
  const { onStoreError } = of.policy
  const { composition } = of.process.options
  switch (source) {
    case 'store':
      return true
    case 'lease':
      return composition.includes('leases')
    case 'denyCache':
      return !allowed && composition.includes('denyCache')
    case 'fallback':
      return onStoreError === 'local'
    case 'failOpen':
      return allowed && onStoreError === 'allow'
    case 'failClosed':
      return !allowed && onStoreError === 'deny'
  }
}

function expectWaits({ of, question }: CallerRequest, decision: Decision, expect: Expect): void {
  const { source, allowed, retryAfterMs, resetAfterMs, cost, limits, remaining, deniedBy } = decision
  const { maxBackoffMs } = of.policy.breaker
  const windowsMs = limits.map(({ windowMs, precisionMs }) => windowMs + precisionMs)
  const mostMs = Math.max(...windowsMs) + LEASE_MS + AHEAD_MS
  const isNever = limits.some(({ limit, shadow }) => !shadow && cost > limit)
  const longestMs = isNever ? Number.POSITIVE_INFINITY : Math.max(mostMs, maxBackoffMs)
  expect(retryAfterMs >= 0 && retryAfterMs <= longestMs, () => `a wait of at most ${longestMs} ms`)
  expect(resetAfterMs >= 0 && resetAfterMs <= mostMs, () => `full reset after ${resetAfterMs} ms`)
  expect(allowed === (retryAfterMs === 0), () => 'exactly denied requests have a wait')
  expect(remaining >= 0, () => 'remaining is negative')
  for (const { name, limit, remaining: left, retryAfterMs: wait, resetAfterMs: reset } of limits) {
    expect(left >= 0 && left <= limit, () => `${left} left of ${limit} (${name})`)
    expect(wait >= 0 && reset >= 0, () => `waits of ${wait} and ${reset} ms (${name})`)
  }
  if (source === 'failClosed') {
    const longestPauseMs = Math.max(MIN_PAUSE_MS, maxBackoffMs)
    const isPause = retryAfterMs >= MIN_PAUSE_MS && retryAfterMs <= longestPauseMs
    expect(isPause, () => `a pause from ${MIN_PAUSE_MS} to ${longestPauseMs} ms`)
  } else if (question === 'consume' && source !== 'failOpen') {
    expect(allowed === (deniedBy.length === 0), () => `denied by ${deniedBy}`)
  }
}
