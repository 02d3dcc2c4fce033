// Runs commands and the service for release-dry.js. Kills them all on exit.

import { spawn } from 'node:child_process'
import { setTimeout } from 'node:timers/promises'
import { ownEnvironment } from '../own-environment.js'

const MAX_LISTEN_S = 60
const MAX_END_S = 15

const ENV = { ...ownEnvironment(), REDIS_URL: '' }

/** @type {Set<number>} Running process groups. */
const groups = new Set()
process.once('exit', () => {
  for (const pid of groups) {
    try {
      process.kill(-pid, 'SIGKILL')
    } catch {
      // It already exited.
    }
  }
})

/**
 * Starts a command in its own process group. Killing npx alone would leave its children running.
 *
 * @param {string} script
 * @param {string} cwd
 * @param {Record<string, string>} [env]
 */
export function start(script, cwd, env = {}) {
  const child = spawn('bash', ['-e', '-c', script], {
    cwd,
    env: { ...ENV, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  })
  const pid = /** @type {number} */ (child.pid)
  groups.add(pid)
  const started = { script, output: '', exitCode: /** @type {number | null | undefined} */ (undefined) }
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text) => {
      started.output += text
    })
  }
  /** @type {Promise<void>} */
  const ended = new Promise((resolve) => {
    child.once('close', (code) => {
      groups.delete(pid)
      started.exitCode = code
      resolve()
    })
  })
  return Object.assign(started, { ended })
}

/** @typedef {ReturnType<typeof start>} Started */

/**
 * Runs a command. Resolves to its output once it has succeeded.
 *
 * @param {string} script
 * @param {string} cwd
 * @param {Record<string, string>} [env]
 */
export async function run(script, cwd, env) {
  const started = start(script, cwd, env)
  await started.ended
  if (started.exitCode !== 0) throw new Error(`Command failed: ${tailOf(started)}`)
  return started.output
}

/**
 * Waits until the service listens, passes its address to `use`, then stops the service.
 *
 * @template T
 * @param {Started} started
 * @param {(url: string) => Promise<T>} use
 */
export async function whileServing(started, use) {
  /** @type {RegExpExecArray | null} */
  let line = null
  const deadline = Date.now() + MAX_LISTEN_S * 1000
  while (!line && started.exitCode === undefined && Date.now() < deadline) {
    await setTimeout(10)
    line = /^\{.*"slidegate is listening".*\}$/m.exec(started.output)
  }
  if (!line) throw new Error(`The service did not start listening: ${tailOf(started)}`)
  const { http, pid } = JSON.parse(line[0])
  const answer = await use(http)
  process.kill(pid, 'SIGTERM')
  await Promise.race([started.ended, setTimeout(MAX_END_S * 1000, undefined, { ref: false })])
  if (started.exitCode === 0) return answer
  const how =
    started.exitCode === undefined
      ? `is still running after ${MAX_END_S} s`
      : `exited with ${started.exitCode}`
  throw new Error(`The service should exit with 0 on SIGTERM, but it ${how}: ${tailOf(started)}`)
}

/** Requests a first decision. @param {string} url @param {Record<string, string>} [headers] */
export async function decide(url, headers) {
  const body = JSON.stringify({ limiter: 'api', key: 'user:42' })
  const init = { method: 'POST', headers: { 'content-type': 'application/json', ...headers }, body }
  const text = await (await fetch(`${url}/v1/consume`, init)).text()
  if (!text.includes('"allowed":true')) throw new Error(`The first request should be allowed, got: ${text}`)
}

/** @param {Started} started */
function tailOf({ script, output }) {
  return `${script.trim()}\n${output.slice(-2000)}`
}
