// @ts-check
// 500 requests within two seconds need a database that answers far fewer. Compares no limit, a fixed and a sliding window.
//
//   node examples/database/main.js          prints a table
//   node examples/database/main.js --draw   also draws database.svg
import { writeFileSync } from 'node:fs'
import { Agent, get } from 'node:http'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import express from 'express'
import { Pool } from 'pg'
import { fixedWindow, memoryStore, slidingWindow } from 'slidegate'
import { rateLimit } from 'slidegate/express'
import { ManualClock } from 'slidegate/testing'
import { listen } from '../support/listen.js'
import { drawAnswers } from './draw.js'
import { startPostgres } from './postgres.js'

const LIMIT = 50
const WINDOW_MS = 2000

const CONNECTIONS = 10
/** How long a query waits for a connection before it fails. */
const QUEUE_TIMEOUT_MS = 1200
/** The time in which the database answers as many queries as the limit. */
const LIMIT_TAKES_MS = 1000

/** The burst starts before a boundary of the fixed window. */
const STARTS_MS = -200
const STEP_MS = 20
const STEPS = 100
const PER_STEP = 5

/** A report that needs much CPU time. */
const REPORT = 'SELECT max(md5(row::text)) FROM generate_series(1, $1::int) AS row'

/**
 * @typedef {object} Answer
 * @property {number} status
 * @property {number} atMs when the request was sent, on the limiters' clock from the boundary on
 * @property {number} tookMs
 */

const postgres = await startPostgres()
const pool = new Pool({
  ...{ host: '127.0.0.1', port: postgres.port, user: 'postgres', database: 'postgres' },
  ...{ max: CONNECTIONS, connectionTimeoutMillis: QUEUE_TIMEOUT_MS, idleTimeoutMillis: 0 },
})
const rows = await rowsPerReport()

const boundaryMs = Math.ceil(Date.now() / WINDOW_MS) * WINDOW_MS
const clock = new ManualClock(boundaryMs)
const store = memoryStore({ clock: clock.now })
/** The times of requests that reached the database's pool. @type {number[]} */
let admitted = []
const app = express()

/** @type {Record<string, readonly import('slidegate').Limit[]>} */
const ways = {
  'no limit': [],
  'fixed window': [fixedWindow({ limit: LIMIT, window: WINDOW_MS })],
  'sliding window': [slidingWindow({ limit: LIMIT, window: WINDOW_MS })],
}
Object.values(ways).forEach((limits, way) => {
  // All users share the database, so they share one key.
  const limited =
    limits.length === 0 ? [] : [rateLimit({ name: `${way}`, limits, store, key: () => 'database' })]
  app.get(`/${way}/report`, ...limited, async (_req, res) => {
    admitted.push(clock.now())
    try {
      const report = await pool.query(REPORT, [rows])
      res.json(report.rows[0])
    } catch (error) {
      if (!(error instanceof Error && error.message.startsWith('timeout exceeded'))) throw error
      res.status(503).send('The database is busy\n')
    }
  })
})

const { server, url } = await listen(app)
const agent = new Agent({ keepAlive: true })
const columns = []
for (const [way, name] of Object.keys(ways).entries()) columns.push({ name, ...(await burst(way)) })
agent.destroy()
server.close()
await pool.end()
await postgres.stop()

print('', ...columns.map(({ name }) => name))
print('reached the database', ...columns.map(({ admitted }) => admitted.length))
print('in the fullest 2 s', ...columns.map(({ admitted }) => fullest(admitted)))
print('answered', ...columns.map(({ answers }) => count(answers, 200)))
print('failed', ...columns.map(({ answers }) => count(answers, 503)))
print('denied', ...columns.map(({ answers }) => count(answers, 429)))
print('p99 of those admitted', ...columns.map(({ answers }) => `${p99(answers).toFixed(0)} ms`))
print('CPU of the database', ...columns.map(({ cpuSeconds }) => `${cpuSeconds.toFixed(2)} s`))

if (process.argv.includes('--draw')) {
  const panels = columns.map(({ name, answers }) => ({
    name,
    answers: answers.filter(({ status }) => status !== 429),
  }))
  const picture = drawAnswers(panels, { startsMs: STARTS_MS, limit: LIMIT, timeoutMs: QUEUE_TIMEOUT_MS })
  writeFileSync(join(import.meta.dirname, 'database.svg'), picture)
}

/** Returns the size of a report. On any machine, the database answers `LIMIT` reports of this size in `LIMIT_TAKES_MS`. */
async function rowsPerReport() {
  let rows = 1000
  for (let round = 0; round < 3; round++) {
    const startedMs = performance.now()
    await Promise.all(
      Array.from({ length: CONNECTIONS }, async () => {
        for (let i = 0; i < LIMIT / CONNECTIONS; i++) await pool.query(REPORT, [rows])
      }),
    )
    rows = Math.ceil((rows * LIMIT_TAKES_MS) / (performance.now() - startedMs))
  }
  return rows
}

/** Sends 500 requests in two seconds. The limiters' clock is set by hand. @param {number} way */
async function burst(way) {
  admitted = []
  // The windows before are long over.
  const startsAtMs = boundaryMs + 10 * way * WINDOW_MS
  const cpuBefore = postgres.cpuSeconds()
  const startedMs = performance.now()
  let denied = 0
  const answers = []
  for (let step = 0; step < STEPS; step++) {
    await delay(startedMs + step * STEP_MS - performance.now())
    // Each run admits the same requests, even if the machine is slow.
    while (admitted.length + denied < step * PER_STEP) await delay(1)
    const atMs = STARTS_MS + step * STEP_MS
    clock.set(startsAtMs + atMs)
    for (let i = 0; i < PER_STEP; i++) {
      answers.push(
        request(`${url}/${way}/report`).then((answer) => {
          if (answer.status === 429) denied++
          return { ...answer, atMs }
        }),
      )
    }
  }
  return {
    answers: await Promise.all(answers),
    admitted,
    cpuSeconds: postgres.cpuSeconds() - cpuBefore,
  }
}

/** @param {string} address @returns {Promise<{ status: number, tookMs: number }>} */
function request(address) {
  const sentMs = performance.now()
  return new Promise((resolve, reject) => {
    get(address, { agent }, (response) => {
      response.resume().once('end', () => {
        resolve({ status: response.statusCode ?? 0, tookMs: performance.now() - sentMs })
      })
    }).once('error', reject)
  })
}

/** Returns how many requests the fullest window holds. It begins with a request. @param {readonly number[]} times */
function fullest(times) {
  return Math.max(...times.map((from) => times.filter((at) => at >= from && at < from + WINDOW_MS).length))
}

/** @param {readonly Answer[]} answers @param {number} status */
function count(answers, status) {
  return answers.filter((answer) => answer.status === status).length
}

/** @param {readonly Answer[]} answers */
function p99(answers) {
  const times = answers.filter(({ status }) => status !== 429).map(({ tookMs }) => tookMs)
  return times.sort((a, b) => a - b)[Math.floor(0.99 * times.length)] ?? 0
}

/** @param {string} what @param {...(string | number)} values */
function print(what, ...values) {
  console.log(`${what.padEnd(24)}${values.map((value) => String(value).padEnd(16)).join('')}`.trimEnd())
}
