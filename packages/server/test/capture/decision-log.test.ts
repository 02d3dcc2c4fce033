// tier: system
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { pino } from 'pino'
import { afterAll, describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { ROOT } from '../../../slidegate/test/docs/markdown.ts'
import { until } from '../../../slidegate/test/support/until.ts'
import type { CapturedRequest } from '../../src/capture/capture.ts'
import type { LoggedDecision } from '../../src/capture/decision-log.ts'
import { ServiceClient } from '../../src/client/service-client.ts'
import type { Config } from '../../src/config/schema.ts'
import { adminService } from '../admin/support.ts'
import { replayJson, temporaryFolder } from '../support/cli.ts'
import { withRedis } from '../support/redis.ts'
import { testService } from '../support/service.ts'
import { startProcess } from '../support/service-process.ts'

const folder = temporaryFolder()
afterAll(folder.remove)

const limits = [{ kind: 'slidingWindow' as const, limit: 2, window: '1h' }]
const limiters: Config['limiters'] = {
  api: {
    limits: [...limits, { kind: 'slidingWindow', limit: 1, window: '1h', name: 'strict', shadow: true }],
  },
  login: { dimensions: { user: limits, address: limits } },
}

interface Line {
  readonly level: number
  readonly msg: string
  readonly decision: LoggedDecision
}

/** Returns the lines that a service logs for four requests. The last request is denied. */
async function logged(logging: Config['logging'], key: unknown = 'ann@example.com'): Promise<Line[]> {
  const lines: Line[] = []
  const log = pino(
    { level: logging?.level ?? 'info' },
    { write: (line: string) => void lines.push(JSON.parse(line)) },
  )
  await using service = await testService({ limiters, ...(logging && { logging }) }, log)
  const limiter = typeof key === 'string' ? 'api' : 'login'
  for (let i = 0; i < 3; i++) await service.post('/v1/consume', { limiter, key })
  return lines.filter(({ msg }) => msg === 'decision')
}

describe('the decision log', () => {
  it('logs each decision once', async () => {
    const lines = await logged({ decisions: 'all' })
    const [first, second, third] = lines.map(({ decision }) => decision)
    expect(lines).toHaveLength(3)
    expect(first).toEqual({
      time: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
      limiter: 'api',
      key: expect.stringMatching(/^[\w-]{16}$/),
      allowed: true,
      cost: 1,
      remaining: 1,
      retryAfterMs: 0,
      deniedBy: [],
      source: 'store',
      shadowDeniedBy: [],
    })
    expect(second).toMatchObject({ key: first!.key, allowed: true, remaining: 0, shadowDeniedBy: ['strict'] })
    expect(third).toMatchObject({ allowed: false, deniedBy: ['2-per-1h'], retryAfterMs: expect.any(Number) })
    expect(third!.retryAfterMs).toBeGreaterThan(3_500_000)
  })

  it('logs only denials or nothing, as configured', async () => {
    expect((await logged({ decisions: 'denied' })).map(({ decision }) => decision.allowed)).toEqual([false])
    expect(await logged({ decisions: 'none' })).toEqual([])
    expect(await logged(undefined)).toEqual([])
  })

  it('works at any log level', async () => {
    expect(await logged({ decisions: 'all', level: 'error' })).toHaveLength(3)
    expect(await logged({ decisions: 'denied', level: 'silent' })).toHaveLength(1)
  })

  it('logs plain keys only if configured, and hashes each key of a request separately', async () => {
    expect((await logged({ decisions: 'denied', keys: 'plain' }))[0]!.decision.key).toBe('ann@example.com')
    const [line] = await logged({ decisions: 'denied' }, { user: 'ann', address: '192.0.2.7' })
    expect(line!.decision.key).toEqual({
      user: expect.stringMatching(/^[\w-]{16}$/),
      address: expect.stringMatching(/^[\w-]{16}$/),
    })
    expect(JSON.stringify(await logged({ decisions: 'all' }))).not.toContain('ann')
  })

  it('writes to a separate file, which can be replayed', async () => {
    const file = join(folder.path, 'decisions.jsonl')
    {
      await using service = await adminService({
        limiters,
        logging: { decisions: 'all', decisionFile: file },
      })
      for (let i = 0; i < 5; i++)
        await service.ask('POST', '/v1/consume', { limiter: 'api', key: 'ann', cost: 1 + (i % 2) })
      expect(service.logged.filter(({ msg }) => msg === 'decision')).toEqual([])
    }
    const lines = readFileSync(file, 'utf8')
      .split('\n')
      .slice(0, -1)
      .map((line) => JSON.parse(line) as Line)
    expect(lines.map(({ decision }) => decision.cost)).toEqual([1, 2, 1, 2, 1])
    const words = ['--key', 'decision.key', '--time-field', 'decision.time', '--limit', '2/1h']
    const report = await replayJson([file, ...words])
    expect([report.requests, report.admitted]).toEqual([
      5,
      lines.filter(({ decision }) => decision.allowed).length,
    ])
  })
})

it('an unread log delays no request, and its lines stay whole', async () => {
  const REQUESTS = 4000
  const config = folder.write(
    'slow.json',
    JSON.stringify({ limiters, store: { memory: {} }, logging: { decisions: 'all' } }),
  )
  const bin = fileURLToPath(new URL('../../bin/slidegate.js', import.meta.url))
  const child = spawn(process.execPath, [bin, 'serve', '--config', config, '--http', '127.0.0.1:0'], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  try {
    const [first] = (await once(child.stdout.setEncoding('utf8'), 'data')) as [string]
    child.stdout.pause()
    const { http } = first.split('\n').flatMap((line) => (line === '' ? [] : [JSON.parse(line)]))[0] as {
      http: string
    }
    const client = new ServiceClient({ url: new URL(http) })
    let told = 0
    for (let i = 0; i < REQUESTS / 100; i++) {
      const requests = Array.from({ length: 100 }, (_, j) => ({ limiter: 'api', key: `user:${i}:${j}` }))
      const { status, body } = await client.answer('POST', '/v1/consume', { requests })
      expect(status).toBe(200)
      told += (body as { decisions: unknown[] }).decisions.length
    }
    expect(told).toBe(REQUESTS)
    const lines: Line[] = []
    const reader = createInterface(child.stdout)
    const all = new Promise<void>((resolve) => {
      reader.on('line', (line) => {
        lines.push(JSON.parse(line))
        if (lines.filter(({ msg }) => msg === 'decision').length === REQUESTS) resolve()
      })
    })
    await all
    expect(new Set(lines.map(({ decision }) => decision?.key)).size).toBeGreaterThanOrEqual(REQUESTS)
  } finally {
    child.kill('SIGKILL')
  }
})

it('workers hash a key to the same value, in the log and in a shared capture', async () => {
  await using redis = await withRedis()
  const file = join(folder.path, 'workers.jsonl')
  const own = { api: { limits, timeoutMs: 30_000 } }
  const config = folder.write(
    'workers.json',
    JSON.stringify({ limiters: own, logging: { decisions: 'all' }, capture: { file } }),
  )
  await using service = await startProcess(['--config', config, '--workers', '3'], { REDIS_URL: redis.url })
  await service.says('slidegate is listening', 3)
  await service.says('all workers are ready')
  const consume = async (i: number) => {
    const client = new ServiceClient({ url: new URL(service.url) })
    const { status } = await client.answer('POST', '/v1/consume', { limiter: 'api', key: `user:${i % 5}` })
    expect([200, 429]).toContain(status)
  }
  for (let round = 0; round < 20; round++)
    await Promise.all(Array.from({ length: 10 }, (_, i) => consume(round * 10 + i)))
  // Polls, because the response doesn't wait for a slow worker.
  const captured = await until('the lines of all workers', async () => {
    const response = await fetch(`${service.url}/v1/admin/capture`, {
      headers: { authorization: `Bearer ${service.token}` },
    })
    const lines = (await response.text()).split('\n').slice(0, -1)
    return lines.length >= 200 && lines.map((line) => JSON.parse(line) as CapturedRequest)
  })
  expect(captured).toHaveLength(200)
  expect(new Set(captured.map(({ key }) => key)).size).toBe(5)
  const isDecision = ({ msg }: Record<string, unknown>) => msg === 'decision'
  await service.says('decision', 200)
  const decisions = service.lines.filter(isDecision) as unknown as (Line & { pid: number })[]
  expect(decisions).toHaveLength(200)
  expect(new Set(decisions.map(({ decision }) => decision.key)).size).toBe(5)
  expect(new Set(decisions.map(({ pid }) => pid)).size).toBeGreaterThan(1)
})

describe('deploy/shipping', () => {
  const at = (name: string) => readFileSync(join(ROOT, 'deploy/shipping', name), 'utf8')
  const template = JSON.parse(at('index-template.json'))
  const { pipeline } = parse(at('fluent-bit.yaml'))
  const [tail, filter, output] = [pipeline.inputs[0], pipeline.filters[0], pipeline.outputs[0]]

  /** Matches a value to its type in the index template. */
  const HOLDS: Readonly<Record<string, (value: unknown) => boolean>> = {
    keyword: (value) => [value].flat().every((each) => typeof each === 'string'),
    boolean: (value) => typeof value === 'boolean',
    long: (value) => value === null || Number.isSafeInteger(value),
    date: (value) => !Number.isNaN(Date.parse(value as string)),
    flattened: (value) => typeof value === 'object' && value !== null,
  }

  it.each([
    ['a key', 'ann@example.com'],
    ['dimensions', { user: 'ann', address: '192.0.2.1' }],
  ])('the filter and the index template fit a decision about %s', async (_, key) => {
    const lines = await logged({ decisions: 'all' }, key)
    expect(lines.length).toBeGreaterThan(0)
    await using redis = await withRedis()
    for (const line of lines) {
      // Redis runs the same version of Lua.
      const script = `${filter.code.replace('function ', 'local function ')}
          local code, _, record = ${filter.call}('', 0, cjson.decode(ARGV[1]))
          return { code, cjson.encode(record) }`
      const [code, text] = (await redis.client.eval(script, 0, JSON.stringify(line))) as [number, string]
      expect(code).toBe(2)
      const { decision } = JSON.parse(text) as Line
      const types = template.template.mappings.properties.decision.properties
      expect(Object.keys(types).sort()).toEqual(Object.keys(decision).sort())
      for (const [field, { type }] of Object.entries<{ type: string }>(types)) {
        // Lua has no empty arrays.
        const value = line.decision[field as keyof LoggedDecision]
        const stored = Array.isArray(value) ? value : decision[field as keyof LoggedDecision]
        expect(HOLDS[type]!(stored), `${field}: ${type}`).toBe(true)
      }
    }
  })

  it('names the same index everywhere', () => {
    const [pattern] = template.index_patterns
    expect(`${output.logstash_prefix}-*`).toBe(pattern)
    const [view, search] = at('kibana.ndjson')
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line))
    expect([view.attributes.title, search.references[0].id]).toEqual([pattern, view.id])
    const known = Object.keys(template.template.mappings.properties.decision.properties)
    const used = [view.attributes.timeFieldName, ...search.attributes.columns]
    expect(used.filter((field) => !known.includes(field.replace('decision.', '')))).toEqual([])
    expect(filter.match).toBe(tail.tag)
    expect(output.match).toBe(tail.tag)
  })

  it('sends metrics, traces and the decision log through declared parts of the Collector', async () => {
    const { service, ...parts } = parse(at('new-relic.yaml'))
    for (const pipeline of Object.values<Record<string, string[]>>(service.pipelines)) {
      for (const [part, names] of Object.entries(pipeline)) {
        expect(names.filter((name) => !(name in parts[part]))).toEqual([])
      }
    }
    expect(Object.keys(service.pipelines)).toEqual(['metrics', 'traces', 'logs'])
    expect(parts.receivers.filelog.include).toEqual([tail.path])
    const [line] = await logged({ decisions: 'all' })
    expect(new Date((line as Line & { time: number }).time).getFullYear()).toBeGreaterThan(2025)
  })
})
