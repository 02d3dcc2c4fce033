// tier: system
import { spawn } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { storeConformance } from '../../src/testing/index.ts'
import { freePort } from '../support/ports.ts'
import { until } from '../support/until.ts'
import { installRuntime } from './installed.ts'

// Runs Workers in workerd, Cloudflare's runtime, with its rules: restrictions before the first request, timers that end with
// their request, and a clock that advances only with I/O.

let program: string
beforeAll(async () => {
  program = await installRuntime('workerd')
}, 600_000)

interface Worker {
  readonly url: string
  end(): Promise<void>
}

async function startWorker(name: string, config: string): Promise<Worker> {
  const folder = await mkdtemp(join(tmpdir(), 'slidegate-worker-'))
  await build({
    entryPoints: [fileURLToPath(new URL(`programs/${name}.ts`, import.meta.url))],
    outfile: join(folder, 'worker.js'),
    ...{ bundle: true, format: 'esm', target: 'es2022', platform: 'browser', logLevel: 'silent' },
    conditions: ['workerd', 'worker'],
    external: ['node:*'],
  })
  const port = await freePort()
  await writeFile(join(folder, 'config.capnp'), configOf(port, config))
  const child = spawn(program, ['serve', join(folder, 'config.capnp')], { stdio: ['ignore', 2, 2] })
  const end = () => {
    child.kill('SIGKILL')
    return rm(folder, { recursive: true, force: true })
  }
  const url = `http://127.0.0.1:${port}`
  await until('a Worker', async () => (await fetch(`${url}/up`)).ok)
  return { url, end }
}

function configOf(port: number, config: string): string {
  return `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [ (name = "main", worker = .worker) ],
  sockets = [ (name = "http", address = "127.0.0.1:${port}", http = (), service = "main") ]
);
const worker :Workerd.Worker = (
  modules = [ (name = "worker", esModule = embed "worker.js") ],
  ${config}
);`
}

const COUNTERS = `
  bindings = [ (name = "COUNTERS", durableObjectNamespace = "Counter") ],
  durableObjectNamespaces = [ (className = "Counter", uniqueKey = "counter") ],
  durableObjectStorage = (inMemory = void),`

/** From the second date on, `nodejs_compat` is enabled by default. */
const WITHOUT_NODE = 'compatibilityDate = "2026-08-01",'
const WITH_NODE = 'compatibilityDate = "2026-08-04",'

describe.each([
  ['without nodejs_compat', WITHOUT_NODE],
  ['with nodejs_compat', WITH_NODE],
])('in Workers, %s', (_, compatibility) => {
  let worker: Worker
  beforeAll(async () => {
    worker = await startWorker('worker', compatibility + COUNTERS)
  })
  afterAll(() => worker?.end())

  const ask = (path: string, address = '203.0.113.7') =>
    fetch(worker.url + path, { headers: { 'cf-connecting-ip': address } })

  it.each([
    ['the Fetch API', '/'],
    ['Hono', '/hono'],
  ])('a handler for %s is limited', async (_, path) => {
    const told: [number, string | undefined][] = []
    for (const address of ['203.0.113.7', '203.0.113.7', '203.0.113.7', '203.0.113.8']) {
      const { status, headers } = await ask(path, address)
      told.push([status, /;r=(\d+)/.exec(`${headers.get('ratelimit')}`)?.[1]])
    }
    expect(told).toEqual([
      [200, '1'],
      [200, '0'],
      [429, '0'],
      [200, '1'],
    ])
  })

  it('a limiter with all features that was created at startup decides', async () => {
    expect(await (await ask('/everything')).json()).toEqual([true, false, true])
  })

  it('requests to a Durable Object wait with shared timers', async () => {
    const answers = await Promise.all(Array.from({ length: 4 }, () => ask('/object')))
    expect(await Promise.all(answers.map((answer) => answer.json()))).toEqual([true, true, true, true])
  })
})

it('in Workers, the memory store passes the conformance suite', async () => {
  const { url, end } = await startWorker('worker-conformance', WITH_NODE)
  onTestFinished(end)
  expect(await (await fetch(`${url}/run`)).json()).toEqual({ cases: storeConformance.length, broken: [] })
})
