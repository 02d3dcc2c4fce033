// @ts-check
// An API serves 50 requests per ten seconds. Three processes send 99 requests, first without and then with a shared budget.
//
//   node examples/third-party/main.js
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { anyRedis } from '../support/redis.js'

const PROCESSES = 3
const REQUESTS = 33

console.log(`${PROCESSES} processes send ${REQUESTS} requests each to an API that serves 50 per 10 s.`)
const redis = await anyRedis()
await send('Without a budget')
await send('With a shared budget', redis.url)
redis.close()

/** @param {string} how @param {string} [redisUrl] */
async function send(how, redisUrl) {
  const upstream = start('upstream.js')
  const [url] = await once(upstream, 'message')
  const startedMs = performance.now()
  const words = [url, `${REQUESTS}`, ...(redisUrl === undefined ? [] : [redisUrl])]
  const clients = Array.from({ length: PROCESSES }, () => start('client.js', words))
  const codes = await Promise.all(clients.map(async (client) => (await once(client, 'exit'))[0]))
  const tookS = (performance.now() - startedMs) / 1000
  const { served, violations } = await (await fetch(`${url}/report`)).json()
  upstream.kill()
  if (codes.some((code) => code !== 0)) throw new Error(`A client failed. Exit codes: ${codes}`)
  console.log(`${how}: ${served} served, ${violations} violations, in ${tookS.toFixed(1)} s`)
}

/** @param {string} name @param {string[]} [words] */
function start(name, words) {
  const child = fork(fileURLToPath(new URL(name, import.meta.url)), words)
  process.once('exit', () => child.kill())
  return child
}
