// tier: system
import { spawn } from 'node:child_process'
import { gzipSync } from 'node:zlib'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, describe, expect, it, test } from 'vitest'
import type { Report } from '../../replay/src/report/report.ts'
import {
  bruteForce,
  combinedLine,
  commonLine,
  type Entry,
  type Expected,
  generateEntries,
  jsonLine,
  logOf,
} from '../../replay/test/support/logs.ts'
import { ask } from '../../slidegate/test/support/ask.ts'
import { type RedisServer, startRedis } from '../../slidegate/test/support/redis-server.ts'
import { replayJson, slidegate, temporaryFolder } from './support/cli.ts'

const folder = temporaryFolder()
afterAll(folder.remove)

const entries = generateEntries(3000)
const LIMITS = [
  { text: '10/1m', limit: 10, windowMs: 60_000 },
  { text: 'burst=3/7s', limit: 3, windowMs: 7000 },
  { text: '60/1h', limit: 60, windowMs: 3_600_000 },
]
const limitWords = LIMITS.flatMap(({ text }) => ['--limit', text])
const expected = bruteForce(entries, LIMITS, 'sliding')
const expectedFixed = bruteForce(entries, LIMITS, 'fixed')

function counts({ admitted, denied, limits }: Pick<Report, 'admitted' | 'denied' | 'limits'>): Expected {
  return { admitted, denied, limits: limits.map(({ denied, fullestWindow }) => ({ denied, fullestWindow })) }
}

describe('a replay matches an exhaustive comparison of all requests', () => {
  const asCommon = logOf(entries, commonLine)
  const mixed = entries
    .map((entry, i) => `${[commonLine, combinedLine, jsonLine][i % 3]!(entry)}\r\n`)
    .join('')

  it.each<[string, string | Buffer, readonly string[]]>([
    ['common', asCommon, []],
    ['common, named', asCommon, ['--format', 'clf']],
    ['combined', logOf(entries, combinedLine), []],
    ['JSON', logOf(entries, jsonLine), []],
    ['JSON, named', logOf(entries, jsonLine), ['--format', 'json']],
    ['mixed', mixed, []],
    ['gzip', gzipSync(asCommon), []],
    [
      'two concatenated gzip files',
      Buffer.concat([asCommon.slice(0, 9999), asCommon.slice(9999)].map((part) => gzipSync(part))),
      [],
    ],
  ])('%s', async (name, content, words) => {
    const file = folder.write(`${name}.log`, content)
    const report = await replayJson([file, ...limitWords, ...words, '--compare', 'fixed'])
    expect(report.requests).toBe(entries.length)
    expect(report.skipped).toBe(0)
    expect(counts(report)).toEqual(expected)
    expect(counts(report.compare!)).toEqual(expectedFixed)
  })

  it('standard input, plain and gzip', async () => {
    expect(counts(await replayJson(['-', ...limitWords], asCommon))).toEqual(expected)
    expect(counts(await replayJson(['-', ...limitWords], gzipSync(asCommon)))).toEqual(expected)
  })

  it('sliding windows never exceed the limit, while fixed windows do', () => {
    expect(expected.limits.every(({ fullestWindow }, i) => fullestWindow <= LIMITS[i]!.limit)).toBe(true)
    expect(expectedFixed.limits.some(({ fullestWindow }, i) => fullestWindow > LIMITS[i]!.limit)).toBe(true)
  })
})

/** Starts a separate Redis whose user may remove the keys of the replay. */
async function startRedisToReplayOn(): Promise<RedisServer> {
  const server = await startRedis()
  const keys = '~slidegate-replay-*'
  await ask(server.port, 'ACL', 'SETUSER', 'default', keys, `(${keys} +unlink)`)
  return server
}

describe('with --store', () => {
  let server: RedisServer
  let redis: Redis
  beforeAll(async () => {
    server = await startRedisToReplayOn()
    redis = new Redis(server.url)
  })
  afterAll(async () => {
    redis?.disconnect()
    await server?.stop()
  })

  it('Redis gives the same result, under a random prefix that is removed afterwards', async () => {
    await redis.set('slidegate-replay-of-others', 'kept')
    const file = folder.write('redis.log', logOf(entries, commonLine))
    const watched = new Redis(server.url)
    const monitor = await watched.monitor()
    const written = new Set<string>()
    monitor.on('monitor', (_time: string, [command = '', _script, _count, key = '']: string[]) => {
      if (/^evalsha$/i.test(command)) written.add(key.split(':')[0]!)
    })
    const words = [file, ...limitWords, '--compare', 'fixed', '--store', server.url]
    const reports = await Promise.all([replayJson(words, ''), replayJson(words, '')])
    monitor.disconnect()
    watched.disconnect()
    for (const report of reports) {
      expect(counts(report)).toEqual(expected)
      expect(counts(report.compare!)).toEqual(expectedFixed)
    }
    expect(Array.from(written)).toEqual([
      expect.stringMatching(/^slidegate-replay-\w+$/),
      expect.stringMatching(/^slidegate-replay-\w+$/),
    ])
    expect(await redis.keys('*')).toEqual(['slidegate-replay-of-others'])
  })

  it('a Redis that requires a password causes a clear error', async () => {
    const guarded = await startRedisToReplayOn()
    const owner = new Redis(guarded.url)
    await owner.config('SET', 'requirepass', 'secret')
    owner.disconnect()
    const file = folder.write('auth.log', logOf(entries.slice(0, 9), commonLine))
    const { code, stderr } = await slidegate(['replay', file, '--limit', '10/1m', '--store', guarded.url])
    const wrong = guarded.url.replace('//', '//:wrongword@')
    const denied = await slidegate(['replay', file, '--limit', '10/1m', '--store', wrong])
    const right = await slidegate([
      'replay',
      file,
      '--limit',
      '10/1m',
      '--store',
      guarded.url.replace('//', '//:secret@'),
    ])
    await guarded.stop()
    expect({ code, stderr }).toEqual({
      code: 1,
      stderr: expect.stringMatching(/^slidegate: can't use Redis at [^\n]*NOAUTH[^\n]*\n$/),
    })
    expect(denied.code).toBe(1)
    expect(denied.stderr).toMatch(/^slidegate: can't use Redis at [^\n]*WRONGPASS[^\n]*\n$/)
    expect(denied.stderr).not.toContain('wrongword')
    expect(right.code).toBe(0)
  })

  it('a Redis that stops ends the run with a clear error', async () => {
    const mortal = await startRedisToReplayOn()
    const words = ['replay', '-', '--limit', '10/1m', '--store', mortal.url, '--reorder', '0']
    const run = slidegate(
      words,
      logOf(
        generateEntries(200_000).toSorted((a, b) => a.timeMs - b.timeMs),
        commonLine,
      ),
    )
    const client = new Redis(mortal.url)
    let hasEnded = false
    void run.then(() => {
      hasEnded = true
    })
    while (!hasEnded && (await client.dbsize()) === 0);
    client.disconnect()
    await mortal.kill()
    const { code, stdout, stderr } = await run
    await mortal.stop()
    expect(code).toBe(1)
    expect(stdout).toBe('')
    expect(stderr).toMatch(/^slidegate: [^\n]*Redis[^\n]*\n$/)
  })
})

describe('the report', () => {
  it('--json prints one object', async () => {
    const late: Entry = { timeMs: entries[0]!.timeMs, key: '192.0.2.1' }
    const file = folder.write(
      'bad.log',
      `${logOf(entries, commonLine)}oops \u001b[31m\n\n${commonLine(late)}\n`,
    )
    const { stdout } = await slidegate([
      'replay',
      file,
      '--limit',
      '10/1m',
      '--top',
      '2',
      '--json',
      '--compare',
      'fixed',
    ])
    const report = JSON.parse(stdout) as Report
    expect(report).toEqual({
      requests: 3000,
      skipped: 3,
      admitted: expect.any(Number),
      denied: 3000 - report.admitted,
      limits: [
        {
          name: '10-per-1m',
          limit: 10,
          windowMs: 60_000,
          denied: report.denied,
          fullestWindow: 10,
          percentOfLimit: 100,
        },
      ],
      skippedReasons: { 'neither an access log line nor a JSON object': 1, 'empty line': 1, 'too late': 1 },
      badLines: [
        { line: 3001, reason: 'neither an access log line nor a JSON object', text: 'oops \\u001b[31m' },
        { line: 3002, reason: 'empty line', text: '' },
        { line: 3003, reason: 'too late', text: commonLine(late) },
      ],
      topDenied: [
        { key: expect.any(String), denied: expect.any(Number) },
        { key: expect.any(String), denied: expect.any(Number) },
      ],
      span: { from: expect.any(String), to: expect.any(String), ms: expect.any(Number) },
      releasedEarly: 0,
      forgottenCallers: 0,
      neededLimits: [{ windowMs: 60_000, callers: 20, exact: true, needs: expect.any(Array) }],
      compare: {
        kind: 'fixed',
        admitted: expect.any(Number),
        denied: expect.any(Number),
        limits: [
          expect.objectContaining({
            name: '10-per-1m',
            fullestWindow: expect.any(Number),
            percentOfLimit: expect.any(Number),
          }),
        ],
      },
    })
    expect(report.topDenied[0]!.denied).toBeGreaterThanOrEqual(report.topDenied[1]!.denied)
  })

  it('prints text by default', async () => {
    const minute = Date.UTC(2024, 0, 1, 12, 0)
    const burst = [...Array(10).fill(minute - 1000), ...Array(10).fill(minute)].map((timeMs) => ({
      timeMs,
      key: '192.0.2.1',
    }))
    const file = folder.write('burst.log', `${logOf(burst, commonLine)}garbage\n`)
    const { stdout, code } = await slidegate(['replay', file, '--limit', '10/1m', '--compare', 'fixed'])
    expect(code).toBe(0)
    expect(stdout).toBe(`2024-01-01T11:59:59.000Z to 2024-01-01T12:00:00.000Z (1s)
  requests  20
  admitted  10  50%
  denied    10  50%
  skipped    1

skipped lines
  neither an access log line nor a JSON object  1
first skipped lines
  line 21: neither an access log line nor a JSON object: garbage

limits (sliding windows)
                 limit  denied  fullest window  % of limit
  10-per-1m  10 per 1m      10              10        100%

with fixed windows: 20 admitted, 0 denied
                 limit  denied  fullest window  % of limit
  10-per-1m  10 per 1m       0              20        200%

Which limit would fit?
  The lowest sliding window limit at which this share of callers is never denied (1 in total):
          90%  95%  99%  99.9%  100%
  per 1m   20   20   20     20    20

most denied
  192.0.2.1  10
`)
  })

  it('limits by the requested key', async () => {
    const lines = ['a', 'b', 'a', 'a', '', 'b'].map((id, i) =>
      JSON.stringify({ at: 1_700_000_000 + i, who: id && { id } }),
    )
    const words = ['-', '--limit', '1/1h', '--key', 'who.id', '--time-field', 'at']
    const report = await replayJson(words, lines.join('\n'))
    expect(report).toMatchObject({
      requests: 5,
      skipped: 1,
      admitted: 2,
      topDenied: [
        { key: 'a', denied: 2 },
        { key: 'b', denied: 1 },
      ],
    })
    expect(report.skippedReasons).toEqual({ 'no key in field "who.id"': 1 })
  })
})

describe('an unusual log is handled', () => {
  it.each<[string, string | Buffer, number]>([
    ['an empty file', '', 0],
    ['an empty gzip', gzipSync(''), 0],
    ['only line feeds', '\n\n', 2],
  ])('%s', async (_, content, skipped) => {
    expect(await replayJson(['-', '--limit', '1/1s'], content)).toMatchObject({
      requests: 0,
      skipped,
      admitted: 0,
      denied: 0,
      span: null,
    })
    expect(await slidegate(['replay', '-', '--limit', '1/1s'], content)).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^no requests in this log\n/),
    })
  })

  it.each<[string, string | Buffer, number]>([
    ['only garbage', 'one\ntwo\nthree', 3],
    ['one byte', Buffer.from([0x1f]), 1],
    ['binary data', Buffer.from(Array.from({ length: 2560 }, (_, i) => (i * 7) % 256)), 11],
  ])('%s, which is an error', async (_, content, skipped) => {
    const lines = `${skipped} of ${skipped} lines`
    expect(await slidegate(['replay', '-', '--limit', '1/1s'], content)).toEqual({
      code: 1,
      stdout: expect.stringMatching(/^no requests in this log\n/),
      stderr: `slidegate: ${lines} were skipped, mostly for this reason: neither an access log line nor a JSON object; check --format\n`,
    })
  })

  it('an absurd time affects no other request', async () => {
    const log = logOf(entries.toSpliced(100, 0, { timeMs: Date.UTC(2999, 0), key: '192.0.2.1' }), commonLine)
    expect(await replayJson(['-', '--limit', '10/1m'], log)).toMatchObject({ requests: 3001, skipped: 0 })
    const beyond = log.replace('/2999:', '/9999:')
    expect(await replayJson(['-', '--limit', '10/1m'], beyond)).toMatchObject({
      requests: 3000,
      skippedReasons: { 'no readable time': 1 },
    })
  })
})

test('a closed pipe causes no error message', async () => {
  const child = spawn(process.execPath, [
    new URL('../bin/slidegate.js', import.meta.url).pathname,
    'replay',
    '-',
    '--limit',
    '1/1s',
  ])
  let stderr = ''
  child.stderr.on('data', (text) => {
    stderr += text
  })
  child.stdout.destroy()
  child.stdin.end(`${commonLine(entries[0]!)}\n`)
  const code = await new Promise((resolve) => child.on('close', resolve))
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
})

test('no server, Redis client or parser of YAML is loaded, so that a replay starts fast', async () => {
  const list = `import { createRequire } from 'node:module'
    process.on('exit', () => console.error(Object.keys(createRequire('file:///').cache).join('\\n')))`
  const NODE_OPTIONS = `--import=data:text/javascript,${encodeURIComponent(list)}`
  const line = `${commonLine(entries[0]!)}\n`
  const { code, stderr } = await slidegate(['replay', '-', '--limit', '1/1s'], line, { NODE_OPTIONS })
  expect([code, stderr]).toEqual([0, expect.stringContaining('/node_modules/commander/')])
  expect(stderr).not.toMatch(/\/node_modules\/(fastify|ioredis|yaml)\//)
})
