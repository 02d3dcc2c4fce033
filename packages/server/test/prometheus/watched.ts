import { setTimeout as delay } from 'node:timers/promises'
import type { Config } from '../../src/config/schema.ts'
import { type TestService, testService } from '../support/service.ts'

export const TOKEN = 'the-token-of-prometheus'

const AUTH: Config['auth'] = {
  tokens: [{ name: 'prometheus', role: 'read', token: TOKEN }],
  anonymous: 'check',
}

/** Limiters of every kind. Everything that can happen happens to `api`. */
const LIMITERS: Config['limiters'] = {
  api: {
    limits: [
      { kind: 'tokenBucket', capacity: 5, refill: 1, interval: '1s', name: 'bucket' },
      { kind: 'slidingWindow', limit: 5, window: '1m', name: 'stricter', shadow: true },
    ],
    ban: { after: 5, within: '1m', for: '2s' },
    onStoreError: 'allow',
  },
  login: {
    dimensions: {
      user: [{ kind: 'slidingWindow', limit: 50, window: '15m' }],
      address: [{ kind: 'slidingWindow', limit: 500, window: '15m' }],
    },
    onStoreError: 'deny',
  },
  fixed: { limits: [{ kind: 'fixedWindow', limit: 100, window: '1m' }], onStoreError: 'local', instances: 2 },
  counter: { limits: [{ kind: 'slidingCounter', limit: 100, window: '1m' }] },
  reports: { limits: [{ kind: 'concurrency', limit: 5, ttl: '10s' }], onStoreError: 'deny' },
  devices: { limits: [{ kind: 'distinct', limit: 5, window: '1h' }], onStoreError: 'deny' },
}

/** Starts a service on Redis with all these limiters. */
export function watchedService(url: string): Promise<TestService> {
  return testService({ store: { redis: { url } }, limiters: LIMITERS, auth: AUTH })
}

/** Starts a service with a memory store that is too small for all keys. */
export function watchedAlone(): Promise<TestService> {
  return testService({
    store: { memory: { maxKeys: 100 } },
    limiters: { alone: { limits: [{ kind: 'slidingWindow', limit: 5, window: '1m' }] } },
    auth: AUTH,
  })
}

/** Sends up to a few hundred requests a second to all limiters, until stopped. */
export function startTraffic(services: readonly TestService[], alone: TestService): AsyncDisposable {
  let isStopped = false
  const line = async (round: (number: number) => Promise<unknown>): Promise<void> => {
    for (let number = 0; !isStopped; number++) await round(number)
  }
  const consume = (service: TestService, requests: readonly object[]) =>
    service.post('/v1/consume', { requests })
  const lines = services.flatMap((service) => [
    line(async (number) => {
      // Half of the requests come from the same caller.
      const key = `user:${number % 2 === 0 ? 0 : number % 20}`
      await consume(service, [
        { limiter: 'api', key },
        { limiter: 'api', key: `user:${number % 15}` },
        { limiter: 'login', key: { user: key, address: '192.0.2.7' } },
        { limiter: 'fixed', key },
        { limiter: 'counter', key },
        { limiter: 'reports', key, requestId: `report:${number}` },
        { limiter: 'devices', key, value: `device:${number % 7}` },
      ])
      await delay(50)
    }),
    // There are more waiters than slots, so some are admitted and others time out.
    ...[2000, 2000, 2000, 200].map((maxWaitMs) =>
      line(async () => {
        await service.post('/v1/wait', { limiter: 'api', key: 'patient', maxWaitMs })
        await delay(50)
      }),
    ),
  ])
  const flood = line(async (number) => {
    await consume(
      alone,
      Array.from({ length: 10 }, (_, i) => ({ limiter: 'alone', key: `user:${number}:${i}` })),
    )
    await delay(50)
  })
  const done = Promise.all([...lines, flood])
  return {
    [Symbol.asyncDispose]: async () => {
      isStopped = true
      await done
    },
  }
}
