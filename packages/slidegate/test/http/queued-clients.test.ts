// tier: system
import { once } from 'node:events'
import { connect, createServer } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { expect, it, onTestFinished } from 'vitest'
import { rateLimit } from '../../src/adapters/node.ts'
import { createLimiter, slidingWindow } from '../../src/index.ts'
import { until } from '../adapters/suite/fixture.ts'

const CLIENTS = 10_000
const QUEUE = 6000
const CONNECTIONS = 100

it(`${QUEUE} of ${CLIENTS} simultaneous clients are queued and served, and the others are rejected`, async () => {
  // The first request uses the whole window until all clients have arrived, and is then refunded.
  const limits = [slidingWindow({ limit: CLIENTS, window: '1h', name: 'all' })]
  const limiter = createLimiter({ limits, maxWaiting: 20_000 })
  const first = await limiter.consume('k', { cost: CLIENTS })
  const limit = rateLimit({ limiter, key: () => 'k', denied: { queue: QUEUE, maxWait: '2h' } })
  let served = 0
  const server = createServer({ settings: { maxConcurrentStreams: 1000 } }, (req, res) =>
    limit(req, res, () => {
      served++
      res.end()
    }),
  )
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const sessions = await Promise.all(
    Array.from({ length: CONNECTIONS }, async () => {
      const session = connect(url)
      await once(session, 'connect')
      return session
    }),
  )
  onTestFinished(async () => {
    for (const session of sessions) session.destroy()
    server.close()
    await once(server, 'close')
  })

  const statuses = new Map<number, number>()
  const answered = new Set<object>()
  let most = 0
  const streams = Array.from({ length: CLIENTS }, (_, i) => {
    const stream = sessions[i % CONNECTIONS]!.request({ ':path': '/' })
    stream.on('response', ({ ':status': status }) => {
      answered.add(stream)
      statuses.set(status!, (statuses.get(status!) ?? 0) + 1)
    })
    stream.on('error', () => {})
    stream.resume()
    return stream
  })
  await until(() => {
    most = Math.max(most, limiter.waiting().length)
    return statuses.get(429) === CLIENTS - QUEUE
  })
  expect([limiter.waiting().length, most, served]).toEqual([QUEUE, QUEUE, 0])

  // A tenth of the clients disconnect. Their places are free immediately, and their units go to the others.
  const gone = streams.filter((stream) => !answered.has(stream)).slice(0, QUEUE / 10)
  for (const stream of gone) stream.close(8)
  await until(() => limiter.waiting().length === QUEUE - gone.length)

  await limiter.refund('k', first)
  await until(() => statuses.get(200) === QUEUE - gone.length)
  expect(served).toBe(QUEUE - gone.length)
  const { remaining } = await limiter.peek('k')
  expect(remaining).toBe(CLIENTS - served)
})
