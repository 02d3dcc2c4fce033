// @ts-check
// Each tenant has the limits of its plan. Plans and single tenants' limits can change at runtime.
//
//   node examples/tenants/server.js           plays a day of the support desk
//   node examples/tenants/server.js --serve   serves
import { fastify } from 'fastify'
import { createLimiter, slidingWindow } from 'slidegate'
import { rateLimit } from 'slidegate/fastify'

/** @type {Record<string, readonly import('slidegate').Limit[]>} */
const plans = {
  free: [slidingWindow({ limit: 10, window: '1h', name: 'hour' })],
  pro: [slidingWindow({ limit: 100, window: '1h', name: 'hour' })],
}

/** Replace this with your database, cached in each process. */
const planOf = new Map([
  ['acme', 'free'],
  ['umbrella', 'pro'],
])
const tenantOf = new Map([
  ['key-of-acme', 'acme'],
  ['key-of-umbrella', 'umbrella'],
])

const limiter = createLimiter({
  name: 'tenants',
  limits: (tenant) => plans[planOf.get(tenant) ?? 'free'] ?? [],
  // With a Redis store, overrides apply in all processes.
  overrides: true,
})

const app = fastify()

/** @param {import('fastify').FastifyRequest} request */
const whoIs = ({ headers }) => tenantOf.get(String(headers['x-api-key']))

app.register(async (api) => {
  // Limit unknown callers by address, so that they can't keep guessing keys.
  api.register(rateLimit({ limiter, key: (request) => whoIs(request) ?? request.ip }))
  api.get('/reports', async (request, reply) => {
    const tenant = whoIs(request)
    return tenant === undefined ? reply.code(401).send() : `a report for ${tenant}\n`
  })
})

// For the support desk. Put it behind a login, or serve it on loopback only, as here.
app.register(async (desk) => {
  const plan = { type: 'object', required: ['plan'], properties: { plan: { enum: Object.keys(plans) } } }
  desk.put('/tenants/:tenant/plan', { schema: { body: plan } }, async (request) => {
    const { tenant } = /** @type {{ tenant: string }} */ (request.params)
    planOf.set(tenant, /** @type {{ plan: string }} */ (request.body).plan)
    return limiter.explain(tenant)
  })
  desk.put('/tenants/:tenant/limits', async (request) => {
    const { tenant } = /** @type {{ tenant: string }} */ (request.params)
    const { limit, ttl } = /** @type {{ limit: number, ttl: import('slidegate').Duration }} */ (request.body)
    await limiter.overrides.set(tenant, { hour: { limit } }, { ttl })
    return limiter.explain(tenant)
  })
  desk.delete('/tenants/:tenant/limits', async (request) => {
    const { tenant } = /** @type {{ tenant: string }} */ (request.params)
    await limiter.overrides.delete(tenant)
    return limiter.explain(tenant)
  })
})

const url = await app.listen({ host: '127.0.0.1', port: Number(process.env.PORT ?? 0) })
console.log(url)
if (!process.argv.includes('--serve')) {
  await playDay()
  await app.close()
}

async function playDay() {
  console.log('\nAcme has the free plan, Umbrella the pro plan:')
  await report('acme', 11)
  await report('umbrella', 11)

  console.log('\nAcme upgrades, and its usage still counts:')
  await desk('PUT', '/tenants/acme/plan', { plan: 'pro' })
  await report('acme', 1)

  console.log('\nUmbrella gets a higher limit for a day:')
  await desk('PUT', '/tenants/umbrella/limits', { limit: 500, ttl: '1d' })
  await report('umbrella', 300)

  console.log('\nThe higher limit is withdrawn, and the limit of the plan is used up:')
  await desk('DELETE', '/tenants/umbrella/limits')
  await report('umbrella', 1)
}

/** @param {string} tenant @param {number} times */
async function report(tenant, times) {
  let served = 0
  /** @type {Response | undefined} */
  let response
  for (let n = 1; n <= times; n++) {
    response = await fetch(`${url}/reports`, { headers: { 'X-API-Key': `key-of-${tenant}` } })
    await response.text()
    if (response.ok) served++
  }
  const limit = response?.headers.get('RateLimit-Policy')
  const state = response?.headers.get('RateLimit')
  console.log(`${tenant}: ${served} of ${times} served; ${limit}; ${state}`)
}

/** @param {string} method @param {string} path @param {object} [body] */
async function desk(method, path, body) {
  const response = await fetch(url + path, {
    method,
    ...(body && { body: JSON.stringify(body), headers: { 'Content-Type': 'application/json' } }),
  })
  const { limits } = await response.json()
  const [{ name, used, remaining }] = limits
  console.log(`${method} ${path}: ${response.status}, ${name}, ${used} used, ${remaining} left`)
}
