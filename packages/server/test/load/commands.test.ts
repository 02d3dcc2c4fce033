// tier: integration
// slidegate bench --ramp against real services and a real Redis. No test checks how fast they are.
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { startRedis } from '../../../slidegate/test/support/redis-server.ts'
import type { Config } from '../../src/config/schema.ts'
import type { RampReport } from '../../src/load/run-ramp.ts'
import { type AdminService, adminService } from '../admin/support.ts'
import { envoyService } from '../envoy/support/envoy-service.ts'
import { slidegateHere } from '../support/cli.ts'

/** Less than the client's timeout, and longer than machine stalls. */
const timeoutMs = 9000

const limiters: Config['limiters'] = {
  api: { limits: [{ kind: 'slidingWindow', limit: 3, window: '1h' }], timeoutMs },
}

/** Two steps that any machine keeps up with, except when it stalls. */
const SMALL = ['--ramp', '10..20/s', '--seconds', '1', '--keys', '2']

async function rampOf(...words: string[]): Promise<RampReport> {
  const { code, stdout, stderr } = await slidegateHere(['bench', ...words, '--json'])
  if (code !== 0 || stderr !== '') throw new Error(`exit code ${code}: ${stderr}`)
  return JSON.parse(stdout)
}

/** Checks what holds however slow the machine is. */
function expectSteps(report: RampReport, target: string): void {
  const { steps, saturation, sustained } = report
  expect(report).toMatchObject({ target, seconds: 1, keys: 2 })
  expect(steps[0]).toMatchObject({ offered: 10, requests: 10, errors: 0, unsent: 0 })
  expect(steps[0]!.achieved).toBeGreaterThan(0)
  expect(steps[0]!.latencyMs.max).toBeGreaterThanOrEqual(steps[0]!.latencyMs.p50)
  if (saturation === null) expect([steps.length, sustained]).toEqual([2, 20])
  else expect(saturation).toBe('rate')
}

describe('a ramp', () => {
  it('measures a service over HTTP', async () => {
    await using service = await adminService({ limiters })
    const report = await rampOf('api', ...SMALL, '--url', service.url)
    expectSteps(report, 'HTTP')
    // Two keys, three requests each. All others are denied.
    expect(report.steps[0]!.denied).toBe(4)
  })

  it('measures a service over gRPC', async () => {
    const unit = '{ unit: hour, requests_per_unit: 3 }'
    await using service = await envoyService(
      { 'web.yaml': `domain: web\ndescriptors: [{ key: remote_address, rate_limit: ${unit} }]\n` },
      { envoy: { files: ['.'], timeoutMs } },
    )
    const grpc = ['--grpc', service.grpcAddress]
    const report = await rampOf('web', ...SMALL, ...grpc, '--descriptor', 'remote_address')
    expectSteps(report, 'gRPC')
    // The two requests before the first step count, too.
    expect(report.steps[0]!.denied).toBe(6)
    const { code, stderr } = await slidegateHere(['bench', 'web', ...SMALL, ...grpc])
    expect([code, stderr]).toEqual([
      2,
      'slidegate: no limit in the domain "web" applies to the descriptor "user"; set --descriptor to a key that the domain limits\n',
    ])
  })

  it('counts decisions without the store as errors', async () => {
    const server = await startRedis()
    const open: Config['limiters'] = { api: { ...limiters.api, timeoutMs: 50, onStoreError: 'allow' } }
    await using service = await adminService({ limiters: open, store: { redis: { url: server.url } } })
    await server.stop()
    const { code, stdout } = await slidegateHere(['bench', 'api', ...SMALL, '--url', service.url, '--json'])
    expect(code).toBe(1)
    expect(JSON.parse(stdout)).toMatchObject({
      saturation: 'errors',
      steps: [{ requests: 10, errors: 10, firstError: 'decided without the store' }],
    })
  })

  it('measures the library in memory', async () => {
    const report = await rampOf('api', ...SMALL, '--memory', '--limit', '3/1h')
    expectSteps(report, 'library in memory')
    expect(report.steps[0]!.denied).toBe(4)
  })

  it('measures the library on Redis', async () => {
    const server = await startRedis()
    onTestFinished(() => server.stop())
    const report = await rampOf('api', ...SMALL, '--redis', server.url, '--limit', '3/1h')
    expect(report).toMatchObject({ target: 'library on Redis', keys: 2 })
    const [{ requests, denied, errors }] = report.steps as [RampReport['steps'][0]]
    // A stall longer than the limiter's timeout makes errors.
    expect(requests).toBe(10)
    expect(denied + errors).toBeGreaterThanOrEqual(4)
  })

  it('prints a row per step and the saturation in words', async () => {
    const { stdout } = await slidegateHere([
      ...['bench', 'api', '--ramp', '10..10', '--seconds', '1', '--keys', '2', '--memory', '--human'],
    ])
    const [title, head, row, verdict] = stdout.split('\n')
    expect(title).toBe('api: library in memory, 2 keys, steps of 1 s')
    expect(head).toMatch(/^ {2}offered\/s +achieved\/s +p50 ms +p90 +p99 +p99\.9 +errors +denied$/)
    expect(row).toMatch(/^ {2}10 +\d+( +[\d.,]+){4} +0 +0$/)
    expect(verdict).toMatch(
      /^ {2}(not saturated: 10\/s sustained|saturated at 10\/s: \d+\/s achieved \(.*%\)\. no)/,
    )
  })

  it('fails if the first rate already gets errors', async () => {
    const server = await startRedis()
    onTestFinished(() => server.stop())
    const store = { redis: { url: server.url } }
    await using service = await adminService({ limiters, store, caps: { inFlight: 1 } })
    const words = ['--ramp', '1000..1000', '--seconds', '1', '--connections', '50', '--url', service.url]
    const { code, stdout, stderr } = await slidegateHere(['bench', 'api', ...words, '--json'])
    const { saturation, sustained, steps } = JSON.parse(stdout) as RampReport
    expect([code, saturation, sustained]).toEqual([1, 'errors', null])
    expect(steps[0]!.firstError).toMatch(/^HTTP 503$/)
    expect(stderr).toContain('some requests got no decision')
  })
})

describe('an error', () => {
  let service: AdminService
  beforeAll(async () => {
    service = await adminService({ limiters })
  })
  afterAll(() => service[Symbol.asyncDispose]())

  it.each<[string, number, RegExp]>([
    ['--ramp fast', 2, /must be two rates from 1 to 100000 per second, such as 100\.\.5000\/s/],
    ['--ramp 0..10', 2, /must be two rates/],
    ['--ramp 20..10', 2, /the lower one first/],
    ['--ramp 1..100001', 2, /must be two rates/],
    ['--ramp --factor 1', 2, /from 1\.1 to 10/],
    ['--ramp --factor much', 2, /from 1\.1 to 10/],
    ['--factor 2', 2, /--factor needs --ramp/],
    ['--memory', 2, /--memory needs --ramp/],
    ['--grpc 127.0.0.1:1', 2, /--grpc needs --ramp/],
    ['--ramp --grpc 127.0.0.1', 2, /invalid --grpc "127\.0\.0\.1"; use a value such as 127\.0\.0\.1:8081/],
    ['--ramp --grpc 127.0.0.1:1', 4, /cannot use 127\.0\.0\.1:1: .*ECONNREFUSED/],
    ['--ramp --grpc 127.0.0.1:1 --memory', 2, /cannot be used with/],
    ['--ramp --redis redis://127.0.0.1:1 --memory', 2, /cannot be used with/],
    [
      '--ramp --redis http://a:secret@127.0.0.1',
      2,
      /invalid --redis "http:\/\/127\.0\.0\.1"; use a value such as/,
    ],
    ['--ramp --redis redis://127.0.0.1:1', 1, /no connection to Redis at 127\.0\.0\.1:1/],
    ['--ramp --memory --limit many', 2, /invalid --limit many/],
    ['--ramp --limit 100/1m', 2, /--limit needs --redis or --memory/],
    ['--ramp --memory --descriptor user', 2, /--descriptor needs --grpc/],
    ['--ramp --seconds 60', 2, /could take 660 s and 12,138,000 requests; at most 600 s/],
    ['--ramp --url http://example.invalid', 2, /another machine; pass --yes/],
    ['--ramp --grpc example.invalid:1', 2, /another machine; pass --yes/],
    ['--ramp --redis redis://example.invalid', 2, /another machine; pass --yes/],
  ])('slidegate bench api %s: exit code %i', async (words, code, message) => {
    const outcome = await slidegateHere(['bench', 'api', ...words.split(' ')], { SLIDEGATE_URL: service.url })
    expect(outcome).toMatchObject({ code, stdout: '' })
    expect(outcome.stderr).toMatch(message)
  })
})
