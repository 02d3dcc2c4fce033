// @ts-check
// A process on any build of the package: it does what it is sent, at the time that it is sent.
import { createServer } from 'node:http'
import { json } from 'node:stream/consumers'
import { pathToFileURL } from 'node:url'
import { Redis } from 'ioredis'

/** @typedef {import('./mixed-processes.ts').Order} Order */
/** @typedef {import('./mixed-processes.ts').Answer} Answer */

const build = process.argv[2]
const load = (/** @type {string} */ file) => import(pathToFileURL(`${build}/${file}`).href)
const { createLimiter, memoryStore, slidingWindow } = await load('index.js')
const { redisStore } = await load('stores/redis/index.js')
const { serveStore, serviceStore } = await load('stores/remote/index.js')

let nowMs = 0
const clock = () => nowMs

/** @type {import('../../src/index.ts').Limiter} */
let limiter

/** @param {import('../../src/index.ts').Store} store */
function limitBy(store, overrides = false) {
  limiter = createLimiter({
    ...{ name: 'mixed', limits: [slidingWindow({ limit: 5, window: 1000, name: 'own' })] },
    ...{ store, timeoutMs: 30_000, logger: false, ...(overrides && { overrides }) },
  })
}

/** A service on a memory store, which the limiter of this process has too. */
async function serve() {
  const store = memoryStore({ clock })
  limitBy(store)
  const answer = serveStore(store, { timeoutMs: 30_000 })
  const server = createServer(async (request, response) => {
    try {
      response.end(JSON.stringify(await answer(await json(request), () => {})))
    } catch (error) {
      response.statusCode = 400
      response.end(JSON.stringify({ code: 'invalid_option', detail: /** @type {Error} */ (error).message }))
    }
  })
  await new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve(undefined)))
  return `http://127.0.0.1:${/** @type {import('node:net').AddressInfo} */ (server.address()).port}`
}

/**
 * @param {Order} order
 * @returns {Promise<Answer>}
 */
async function follow(order) {
  nowMs = order.nowMs
  switch (order.what) {
    case 'serve':
      return { url: await serve() }
    case 'ask':
      limitBy(serviceStore(order.url))
      return {}
    case 'open':
      limitBy(redisStore(new Redis(order.port), { clock, prefix: order.prefix }), order.overrides)
      return {}
    case 'override':
      await limiter.overrides.set('ann', order.change)
      return {}
    case 'peek':
      return { used: 5 - (await limiter.peek('ann')).remaining }
    case 'consume': {
      const decisions = await Promise.all(Array.from({ length: order.times }, () => limiter.consume('ann')))
      return { admitted: decisions.filter(({ allowed }) => allowed).length }
    }
  }
}

process.on('message', async (/** @type {Order} */ order) => {
  try {
    process.send?.(await follow(order))
  } catch (error) {
    const { name, reason, message } = /** @type {import('../../src/index.ts').StoreUnavailableError} */ (
      error
    )
    process.send?.({ error: { name, reason, message } })
  }
})
