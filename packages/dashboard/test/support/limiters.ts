import type { Config } from '../../../server/src/config/schema.ts'

/** Tests shouldn't depend on the machine's load. */
const timeoutMs = 30_000

/** Limits with windows longer than any test. */
export const LIMITERS: Config['limiters'] = {
  api: {
    limits: [
      { kind: 'slidingWindow', limit: 100, window: '1h', name: 'hourly' },
      { kind: 'slidingWindow', limit: 50, window: '1h', name: 'stricter', shadow: true },
    ],
    timeoutMs,
  },
  login: {
    dimensions: {
      user: [{ kind: 'slidingWindow', limit: 5, window: '15m' }],
      address: [{ kind: 'slidingWindow', limit: 50, window: '15m' }],
    },
    plans: {
      staff: {
        dimensions: {
          user: [{ kind: 'slidingWindow', limit: 70, window: '15m' }],
          address: [{ kind: 'slidingWindow', limit: 700, window: '15m' }],
        },
      },
    },
    ban: { after: 20, within: '1h', for: ['5m', '1h'] },
    timeoutMs,
  },
  llm: {
    limits: [{ kind: 'tokenBucket', capacity: 40_000, refill: 20_000, interval: '1m', name: 'tokens' }],
    plans: { gold: { limits: [{ kind: 'slidingWindow', limit: 1_000_000, window: '1d', name: 'daily' }] } },
    timeoutMs,
  },
  reports: { limits: [{ kind: 'concurrency', limit: 3, ttl: '30s' }], timeoutMs },
}

export const TOKENS = {
  check: 'a-token-that-may-only-check',
  read: 'a-token-that-may-only-read',
  admin: 'a-token-that-may-do-it-all',
} as const

export const AUTH: Config['auth'] = {
  tokens: [
    { name: 'program', role: 'check', token: TOKENS.check },
    { name: 'reader', role: 'read', token: TOKENS.read },
    { name: 'operator', role: 'admin', token: TOKENS.admin },
  ],
}
