import { createLimiter, slidingWindow } from 'slidegate'
import { serviceStore } from 'slidegate/client'

// Sends a number of requests to a service, as one of several processes, and prints counts of the decisions.
// Stops early after 1000 requests that failed open.

const [url = '', requests, width, limit, policy] = process.argv.slice(2)
const onStoreError = policy === 'allow' ? 'allow' : 'throw'
const limiter = createLimiter({
  name: 'audited',
  limits: [slidingWindow({ limit: Number(limit), window: '1h' })],
  store: serviceStore(url),
  timeoutMs: onStoreError === 'throw' ? 30_000 : 2000,
  onStoreError,
  logger: false,
})

let left = Number(requests)
/** @type {Record<string, number>} */
const told = {}
let slowestMs = 0

async function ask() {
  while (left-- > 0 && (told['failOpen:true'] ?? 0) < 1000) {
    const startMs = performance.now()
    const decision = await limiter.consume(`key${left % 3}`)
    slowestMs = Math.max(slowestMs, performance.now() - startMs)
    const what = `${decision.source}:${decision.allowed}`
    told[what] = (told[what] ?? 0) + 1
    if (told[what] === 1) console.log(what)
  }
}

await Promise.all(Array.from({ length: Number(width) }, ask))
console.log(JSON.stringify({ told, slowestMs }))
limiter.close()
