// @ts-check
// A shop sells at most 50 items per three seconds. Customers arrive around the edge of a fixed window.
//
//   node examples/flash-sale/server.js           plays the sale, on a manual clock
//   node examples/flash-sale/server.js --serve   keeps the shop open, on the real clock
import express from 'express'
import { fixedWindow, memoryStore, slidingWindow } from 'slidegate'
import { rateLimit } from 'slidegate/express'
import { ManualClock } from 'slidegate/testing'
import { listen } from '../support/listen.js'

const LIMIT = 50
const WINDOW_MS = 3000

const serves = process.argv.includes('--serve')
const startsAtMs = Math.ceil(Date.now() / WINDOW_MS) * WINDOW_MS
const clock = new ManualClock(startsAtMs - 1000)
const store = serves ? memoryStore() : memoryStore({ clock: clock.now })

const shop = express()

/** @param {string} counter @param {import('slidegate').Limit} limit */
function open(counter, limit) {
  /** The times of sales. @type {number[]} */
  const sold = []
  const limited = rateLimit({
    name: counter,
    limits: [limit],
    store,
    onAllowed: ({ atMs }) => sold.push(atMs),
  })
  shop.post(`/${counter}/buy`, limited, (_req, res) => {
    res.send('sold\n')
  })
  return sold
}

const fixed = open('fixed', fixedWindow({ limit: LIMIT, window: WINDOW_MS }))
const sliding = open('sliding', slidingWindow({ limit: LIMIT, window: WINDOW_MS }))

const { server, url } = await listen(shop)
console.log(url)
if (!serves) {
  await playSale()
  server.close()
}

/** Sends ten customers to each counter every 0.1 s, for two seconds around the edge. */
async function playSale() {
  for (; clock.now() < startsAtMs + 1000; clock.advance(100)) {
    await Promise.all(Array.from({ length: 10 }, () => [buy('fixed'), buy('sliding')]).flat())
  }

  print('', 'fixed window', 'sliding window')
  for (let fromMs = -1000; fromMs < 1000; fromMs += 500) {
    const count = (/** @type {number[]} */ sold) => within(sold, startsAtMs + fromMs, 500)
    print(`from ${seconds(fromMs)} on`, count(fixed), count(sliding))
  }
  print(`fullest ${WINDOW_MS / 1000} s`, share(fixed), share(sliding))
}

/** @param {string} counter */
async function buy(counter) {
  const response = await fetch(`${url}/${counter}/buy`, { method: 'POST' })
  await response.text()
}

/** Returns the sales in the fullest window. It begins with a sale. @param {number[]} sold */
function share(sold) {
  const fullest = Math.max(...sold.map((fromMs) => within(sold, fromMs, WINDOW_MS)))
  return `${fullest} of ${LIMIT} = ${(100 * fullest) / LIMIT}%`
}

/** @param {number[]} sold @param {number} fromMs @param {number} lengthMs */
function within(sold, fromMs, lengthMs) {
  return sold.filter((atMs) => atMs >= fromMs && atMs < fromMs + lengthMs).length
}

/** @param {number} ms */
function seconds(ms) {
  return `${ms < 0 ? '-' : '+'}${(Math.abs(ms) / 1000).toFixed(1)} s`
}

/** @param {string} what @param {string | number} fixed @param {string | number} sliding */
function print(what, fixed, sliding) {
  console.log(what.padEnd(16) + String(fixed).padEnd(20) + sliding)
}
