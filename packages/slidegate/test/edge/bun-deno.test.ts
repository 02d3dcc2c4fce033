// tier: system
import { execFile, spawn } from 'node:child_process'
import { get } from 'node:http'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { storeConformance } from '../../src/testing/index.ts'
import { useRedis } from '../support/use-redis.ts'
import { installRuntime } from './installed.ts'

// Runs the published code in dist/ in the real runtimes. `slidegate` is imported by name.

const { server, redis } = await useRedis()

const INSTALL_MS = 600_000

const RUNTIMES = {
  bun: ['run', '--no-install'],
  deno: ['run', '--allow-all', '--no-lock', '--node-modules-dir=manual', '--quiet'],
} as const

function fileOf(program: string): string {
  return fileURLToPath(new URL(`programs/${program}.ts`, import.meta.url))
}

interface Answer {
  readonly status: number | undefined
  readonly left: string | undefined
}

/** Sends a request on a new connection from a loopback address. */
function ask(port: number, from = '127.0.0.1'): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const options = { host: '127.0.0.1', port, localAddress: from, agent: false }
    get(options, (response) => {
      response.resume().on('end', () => {
        const left = /;r=(\d+)/.exec(`${response.headers.ratelimit}`)?.[1]
        resolve({ status: response.statusCode, left })
      })
    }).on('error', reject)
  })
}

describe.each(Object.keys(RUNTIMES) as (keyof typeof RUNTIMES)[])('in %s', (runtime) => {
  const env = { ...process.env, NO_COLOR: '1', DO_NOT_TRACK: '1', DENO_NO_UPDATE_CHECK: '1' }
  let program: string
  let ports: Readonly<Record<string, number>>
  let end = () => {}

  beforeAll(async () => {
    program = await installRuntime(runtime)
    const child = spawn(program, [...RUNTIMES[runtime], fileOf('serve')], {
      env,
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    end = () => void child.kill('SIGKILL')
    for await (const line of createInterface(child.stdout)) {
      ports = JSON.parse(line)
      break
    }
  }, INSTALL_MS)
  afterAll(() => end())

  it('the memory store and the Redis store with both clients pass the conformance suite', async () => {
    await redis.flushall()
    const args = [...RUNTIMES[runtime], fileOf('conformance')]
    const { stdout } = await promisify(execFile)(program, args, { env: { ...env, REDIS_URL: server.url } })
    const kept = { cases: storeConformance.length, broken: [] }
    expect(JSON.parse(stdout)).toEqual({ memory: kept, redis: kept, ioredis: kept })
  }, 600_000)

  describe.each(['fetch', 'hono', 'node', 'express', 'koa', 'fastify'])('behind slidegate/%s', (adapter) => {
    it.each(['rejecting', 'queueing'])('callers are distinguished by their connections, %s', async (name) => {
      const port = ports[`${adapter} ${name}`]!
      const told = [await ask(port), await ask(port), await ask(port), await ask(port, '127.0.0.2')]
      expect(told).toEqual([
        { status: 200, left: '1' },
        { status: 200, left: '0' },
        { status: 429, left: '0' },
        { status: 200, left: '1' },
      ])
    })

    it('successful requests are refunded', async () => {
      const port = ports[`${adapter} refunding`]!
      for (let i = 0; i < 5; i++) {
        // The refund follows the response, so it may still be pending when the response arrives.
        await expect.poll(() => ask(port)).toEqual({ status: 200, left: '1' })
      }
    })
  })
})
