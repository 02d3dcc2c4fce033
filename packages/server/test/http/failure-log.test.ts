import { Writable } from 'node:stream'
import { pino } from 'pino'
import { StoreUnavailableError } from 'slidegate'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { FailureLog } from '../../src/http/problems.ts'
import { redacting } from '../../src/redact.ts'

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

function recorded() {
  const lines: string[] = []
  const stream = new Writable({
    write(chunk, _encoding, done) {
      lines.push(String(chunk))
      done()
    },
  })
  return { failures: new FailureLog(redacting(pino({ level: 'debug' }, stream))), lines }
}

const REASONS = ['down', 'error', 'down', 'timeout', 'down'] as const

function failAt(failures: FailureLog, request: number): void {
  const reason = REASONS[request % REASONS.length]!
  const limiter = `limiter-${request % 200}`
  const err = new StoreUnavailableError(
    reason,
    `limiter "${limiter}": no connection to Redis at 127.0.0.1:6999 (connect ECONNREFUSED)`,
    { cause: new Error('connect ECONNREFUSED 127.0.0.1:6999') },
  )
  const fields = { method: 'POST', route: '/v1/consume', status: 503, code: `store_${reason}`, limiter, err }
  failures.failed('warn', `store_${reason}`, '', fields)
}

it('an outage of a minute at 500 requests/s takes at most 100 lines and 100 KB', () => {
  const { failures, lines } = recorded()
  for (let request = 0; request < 30_000; request++) {
    failAt(failures, request)
    vi.advanceTimersByTime(2)
  }
  vi.advanceTimersByTime(1000)
  expect(lines.length).toBeLessThanOrEqual(100)
  expect(lines.join('').length).toBeLessThan(100_000)
  const written = lines.map((line) => JSON.parse(line))
  const full = written.filter(({ msg }) => msg === 'request failed')
  expect(full.map(({ code }) => code)).toEqual(['store_down', 'store_error', 'store_timeout'])
  expect(full[0].err.message).toContain('127.0.0.1:6999')
  expect(lines.join('')).not.toContain('stack')
  // Every request is logged or counted.
  let counted = full.length
  for (const { requests = {} } of written) {
    for (const count of Object.values<number>(requests)) counted += count
  }
  expect(counted).toBe(30_000)
})

it('logs a kind of failure in full again after a minute without it', () => {
  const { failures, lines } = recorded()
  failAt(failures, 0)
  vi.advanceTimersByTime(61_000)
  failAt(failures, 0)
  expect(lines.map((line) => JSON.parse(line).msg)).toEqual(['request failed', 'request failed'])
})

it('distinguishes up to 64 kinds of failures', () => {
  const { failures, lines } = recorded()
  for (let i = 0; i < 1000; i++) failures.failed('error', 'internal', `bug ${i}`, { status: 500 })
  vi.advanceTimersByTime(1000)
  expect(lines.length).toBe(65)
  expect(JSON.parse(lines.at(-1)!)).toMatchObject({ requests: { internal: 936 } })
})

it('logs pending counts when the service stops', () => {
  const { failures, lines } = recorded()
  for (let i = 0; i < 3; i++) failAt(failures, 0)
  failures.flush()
  expect(JSON.parse(lines.at(-1)!)).toMatchObject({ level: 40, requests: { store_down: 2 } })
  vi.advanceTimersByTime(2000)
  expect(lines.length).toBe(2)
})
