// @ts-check
// Counts the calls of each client in the last ten seconds. A second program reads each call from the Redis stream.
//
//   node examples/client-calls/server.js           plays 20 seconds, on a manual clock
//   node examples/client-calls/server.js --serve   keeps the server running, on the real clock
import { Redis } from 'ioredis'
import { slidingCount } from 'slidegate'
import { redisStore } from 'slidegate/redis'
import { ManualClock } from 'slidegate/testing'
import { listen } from '../support/listen.js'
import { anyRedis } from '../support/redis.js'

const serves = process.argv.includes('--serve')
const { url: redisUrl, close } = await anyRedis()
const redis = new Redis(redisUrl)
const clock = new ManualClock(0)
const store = serves ? redisStore(redis) : redisStore(redis, { clock: clock.now })
const calls = slidingCount({ name: 'calls', period: '10s', log: 'stream', store, timeoutMs: 1000 })

// Replies with the number of the client's calls, including this one.
const { server, url } = await listen(async (req, res) => {
  const client = String(req.headers['x-client'] || 'anonymous')
  try {
    res.end(`${await calls.add(client)}`)
  } catch (error) {
    res.writeHead(503).end(`${error}`)
  }
})
console.log(url)

if (!serves) {
  await play()
  await follow()
  server.close()
  calls.close()
  await redis.quit()
  close()
}

/** Ada calls twice per second. Bob calls every other second. Eve makes 30 calls after six seconds. */
async function play() {
  for (const client of ['ada', 'bob', 'eve']) await calls.reset(client)
  console.log('after   ada  bob  eve')
  for (let second = 1; second <= 20; second++) {
    clock.advance(1000)
    const callers = [
      'ada',
      'ada',
      ...(second % 2 === 0 ? ['bob'] : []),
      ...Array(second === 6 ? 30 : 0).fill('eve'),
    ]
    await Promise.all(callers.map((client) => fetch(url, { headers: { 'x-client': client } })))
    if (second % 4 !== 0) continue
    const counts = await Promise.all(['ada', 'bob', 'eve'].map((client) => calls.get(client)))
    console.log(`${second} s`.padEnd(6) + counts.map((count) => `${count}`.padStart(5)).join(''))
  }
}

/** Reads a log as any other program can. The key ends with the period in milliseconds. */
async function follow() {
  const [key = ''] = await redis.keys('*:calls:bob:x10000')
  for (const [id, [, , , units, , total]] of await redis.xrange(key, '-', '+')) {
    console.log(`bob's stream: ${id.split('-')[0]} ms, ${units} call, ${total} in total`)
  }
}
