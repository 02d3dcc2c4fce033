// @ts-check
// Simulates the API: serves 50 requests per ten seconds, and counts the excess.
import { setTimeout as delay } from 'node:timers/promises'
import { listen } from '../support/listen.js'

const LIMIT = 50
const WINDOW_MS = 10_000

/** Arrival times of served requests. @type {number[]} */
const arrivals = []
let violations = 0

const { url } = await listen(async (req, res) => {
  if (req.url === '/report') {
    res.end(JSON.stringify({ served: arrivals.length, violations }))
    return
  }
  const nowMs = performance.now()
  const isFull = arrivals.filter((atMs) => atMs > nowMs - WINDOW_MS).length >= LIMIT
  if (isFull) violations++
  else arrivals.push(nowMs)
  await delay(20 + 180 * Math.random())
  res.writeHead(isFull ? 429 : 200).end()
}, 0)
process.send?.(url)
