import { type Decision, SlidegateError, type Source, StoreUnavailableError } from '../../src/index.ts'
import { type Asked, wordsOf, wordsOfAnswer } from './asked.ts'
import type { World } from './world.ts'

/** A timer that comes early is set once more; then the loop has to come around. Where it was blocked there is some grace. */
const SLACK_MS = 4
const GRACE_MS = 8

/** By so much an instant may be ahead of the store's clock. */
const AHEAD_MS = 1000

/** The longest lease, by which windows are longer. */
const LEASE_MS = 100

const MIN_PAUSE_MS = 100

const EXACT: readonly (Source | undefined)[] = ['store', 'lease', 'denyCache']

/** What must be true of any answer, looked at alone. */
export function expectAnswer(world: World, asked: Asked): void {
  const { of, error, decision, isRefused, mustBeExact, returned = 0, cost } = asked
  const expect = (holds: boolean, otherwise: () => string) =>
    world.expect(holds, () => `${wordsOf(asked)}: ${otherwise()}: ${wordsOfAnswer(asked)}`)
  if (isRefused) {
    expect(error instanceof SlidegateError && error.code === 'closed', () => 'the limiter is closed')
    return
  }
  expectInTime(world, asked, expect)
  if (error !== undefined) {
    const isUnavailable = error instanceof StoreUnavailableError
    world.count(`error ${isUnavailable ? error.reason : error}`)
    expect(isUnavailable, () => 'another error')
    expect(
      of.policy.onStoreError === 'throw' || decidesNothing(asked),
      () => `an error with ${of.policy.onStoreError}`,
    )
  }
  expect(returned <= cost, () => 'more returned than charged')
  if (mustBeExact) expect(EXACT.includes(decision?.source), () => 'the servers are back')
  if (decision === undefined) return
  world.count(`${decision.allowed ? 'allowed' : 'denied'} by ${decision.source}`)
  expect(isSourceRight(decision, asked), () => `with ${of.policy.onStoreError}`)
  const isCharged = decision.source === 'store' || decision.source === 'lease'
  if (isCharged && decision.allowed && asked.question === 'consume')
    expect(asked.execution !== undefined && asked.isLate === false, () => 'not charged')
  expectWaits(asked, decision, expect)
}

type Expect = (holds: boolean, otherwise: () => string) => void

function decidesNothing({ question }: Asked): boolean {
  return question !== 'consume' && question !== 'peek'
}

function expectInTime({ loop }: World, asked: Asked, expect: Expect): void {
  const { timeoutMs } = asked.of.policy
  const { error } = asked
  const tookMs = loop.nowMs - asked.atMs
  const blockedMs = loop.stalledMs - asked.stalledMs
  // That of those who were due before it, too.
  const graceMs = asked.atMs - loop.stalledAtMs <= timeoutMs + GRACE_MS ? GRACE_MS : 0
  expect(
    tookMs <= timeoutMs + blockedMs + graceMs + SLACK_MS,
    () => `took ${tookMs} ms, of which the loop was blocked for ${blockedMs}`,
  )
  const isTimeout = error instanceof StoreUnavailableError && error.reason === 'timeout'
  // Its time is that at which the task that has asked began.
  const waitedMs = tookMs + asked.stalledHereMs
  expect(!isTimeout || waitedMs >= timeoutMs, () => `given up after ${tookMs} ms`)
}

function isSourceRight({ source, allowed }: Decision, { of }: Asked): boolean {
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

function expectWaits({ of, question }: Asked, decision: Decision, expect: Expect): void {
  const { source, allowed, retryAfterMs, resetAfterMs, cost, limits, remaining, deniedBy } = decision
  const { maxBackoffMs } = of.policy.breaker
  const windowsMs = limits.map(({ windowMs, precisionMs }) => windowMs + precisionMs)
  const mostMs = Math.max(...windowsMs) + LEASE_MS + AHEAD_MS
  const isNever = limits.some(({ limit, shadow }) => !shadow && cost > limit)
  const longestMs = isNever ? Number.POSITIVE_INFINITY : Math.max(mostMs, maxBackoffMs)
  expect(retryAfterMs >= 0 && retryAfterMs <= longestMs, () => `a wait of at most ${longestMs} ms`)
  expect(resetAfterMs >= 0 && resetAfterMs <= mostMs, () => `all back in ${resetAfterMs} ms`)
  expect(allowed === (retryAfterMs === 0), () => 'a wait for those who are denied, and nobody else')
  expect(remaining >= 0, () => 'less than nothing')
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
