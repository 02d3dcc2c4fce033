import { gzipSync } from 'node:zlib'
import fc from 'fast-check'
import { slidingWindow } from 'slidegate'
import { afterAll, expect } from 'vitest'
import { temporaryFolder } from '../../../server/test/support/cli.ts'
import { fuzz } from '../../../slidegate/test/fuzz/harness.ts'
import { mutated, texts } from '../../../slidegate/test/fuzz/hostile.ts'
import { Results } from '../../src/counts/results.ts'
import { memoryDecider, parseRedisUrl } from '../../src/decider.ts'
import { UsageError } from '../../src/errors.ts'
import { countedAs, parseLimit } from '../../src/limit-option.ts'
import { LOG_FORMATS, lineParser } from '../../src/log/parse-line.ts'
import { readLines } from '../../src/log/read-lines.ts'
import { ReorderBuffer } from '../../src/log/reorder-buffer.ts'
import { splitLines } from '../../src/log/split-lines.ts'
import { replay } from '../../src/replay.ts'
import { formatReport } from '../../src/report/format-report.ts'
import { reportOf } from '../../src/report/report.ts'
import { printable, printableJson } from '../../src/text.ts'
import { combinedLine, commonLine, jsonLine } from '../support/logs.ts'

const folder = temporaryFolder()
afterAll(folder.remove)

/** CPU milliseconds: far more than any line needs. */
const LONG_MS = 2000
/** Longest key in UTF-16 units. */
const MOST_OF_KEY = 400

const startMs = Date.UTC(2024, 1, 28, 23, 50)
const entries = fc.record({
  timeMs: fc.nat(10_000).map((s) => startMs + s * 1000),
  key: fc.constantFrom('192.0.2.1', '2001:db8::1', '::ffff:192.0.2.1', '-', 'fe80::1%eth0', 'localhost'),
})

const values = fc.oneof(
  texts,
  fc.jsonValue(),
  fc.constantFrom(0, -1, 1e308, 1e15, 1_709_164_800, '1709164800.5'),
)
const jsonLines = fc.oneof(
  entries.map(jsonLine),
  fc.record({ time: values, ip: values }).map((record) => JSON.stringify(record)),
  fc
    .tuple(values, values)
    .map(([time, ip]) => `{"__proto__":{"time":${JSON.stringify(time)}},"ip":${JSON.stringify(ip)}}`),
  fc
    .tuple(fc.constantFrom('[', '{"a":', '"', '\\'), fc.nat(5000))
    .map(([unit, n]) => `{"ip":${unit.repeat(n)}`),
)

/** Log lines as servers write them, with random damage. */
const lines = fc.oneof(
  { weight: 3, arbitrary: mutated(entries.map(commonLine)) },
  { weight: 3, arbitrary: mutated(entries.map(combinedLine)) },
  { weight: 3, arbitrary: mutated(jsonLines) },
  { weight: 1, arbitrary: mutated(texts) },
  {
    weight: 1,
    arbitrary: fc
      .tuple(entries.map(combinedLine), texts)
      .map(([line, text]) => line.replace('GET', () => text)),
  },
  {
    weight: 1,
    arbitrary: fc
      .tuple(fc.constantFrom('"', '\\', '\\"', ' ', '[', '] "', 'a ', '\u001b[2J'), fc.nat(70_000))
      .map(([unit, n]) => `1.2.3.4 - - [28/Feb/2024:23:50:00 +0000] "${unit.repeat(n)}`),
  },
)

const flags = fc.record({
  format: fc.constantFrom(...LOG_FORMATS),
  key: fc.oneof(
    fc.constantFrom('ip', 'user', 'path', 'status', 'method', 'a.b', '__proto__', 'constructor'),
    texts,
  ),
  timeField: fc.oneof(fc.constantFrom('time', 'ts', '__proto__.time', '\u001b[31m'), texts),
})

/** Characters that could control a terminal or hide text, except line ends. */
const STEERING = new RegExp(
  `[${[
    ...['0-9', 'b-1f', '7f-9f', 'ad-ad', '61c-61c', '200b-200f', '2028-202e', '2060-2069', 'feff-feff'],
    ...['d800-dfff', 'e0001-e007f'],
  ]
    .map((range) => range.replace(/(\w+)-(\w+)/, '\\u{$1}-\\u{$2}'))
    .join('')}]`,
  'u',
)

fuzz('log lines', fc.record({ line: lines, flags }), ({ line, flags }) => {
  const started = process.cpuUsage()
  const parsed = lineParser(flags)(line)
  if (process.cpuUsage(started).user > LONG_MS * 1000) throw new Error('a line that takes its time')
  if ('bad' in parsed) {
    if (parsed.bad === '' || parsed.bad.length > 1000 || STEERING.test(parsed.bad))
      throw new Error(parsed.bad)
    return
  }
  const { timeMs, key } = parsed
  if (!Number.isSafeInteger(timeMs) || timeMs <= 0 || timeMs >= Date.UTC(3000, 0, 1))
    throw new Error(`invalid time ${timeMs}`)
  if (key === '' || key.length > MOST_OF_KEY || !key.isWellFormed()) throw new Error(`invalid key ${key}`)
})

const endings = fc.constantFrom('\n', '\r\n', '\n\n', '')

fuzz(
  'log files',
  fc.record({
    lines: fc.array(fc.tuple(lines, endings), { maxLength: 30 }),
    damage: fc.option(fc.record({ at: fc.nat(), to: fc.nat(255) }), { freq: 2 }),
    chunk: fc.integer({ min: 1, max: 5000 }),
    flags,
  }),
  async ({ lines, damage, chunk, flags }) => {
    const bytes = Buffer.from(lines.flat().join(''))
    if (damage !== null && bytes.length > 0) bytes[damage.at % bytes.length] = damage.to
    const limit = slidingWindow({ limit: 2, window: '1m', name: 'two' })
    const buffer = new ReorderBuffer({ boundMs: 60_000, capacity: 20 })
    const runs = [limit, countedAs('fixed', limit)].map((each) => ({
      decider: memoryDecider([each]),
      results: new Results([each]),
    }))
    const replayed = await replay(splitLines(chunks(bytes, chunk)), lineParser(flags), buffer, runs)
    const report = reportOf(replayed, buffer, 10, [], runs[0]!, runs[1])
    const written = bytes.toString().replace(/^\uFEFF/, '')
    const count = written === '' ? 0 : written.split('\n').length - (written.endsWith('\n') ? 1 : 0)
    expect(report.requests + report.skipped).toBe(count)
    expect(Object.values(report.skippedReasons).reduce((sum, each) => sum + each, 0)).toBe(report.skipped)
    expect(report.admitted + report.denied).toBe(report.requests)
    for (const output of [formatReport(report), printableJson(report)]) {
      if (STEERING.test(output) || output.length > 20_000)
        throw new Error(`unsafe or long output: ${JSON.stringify(output)}`)
    }
    expect(JSON.parse(printableJson(report))).toEqual(JSON.parse(JSON.stringify(report)))
  },
)

fuzz(
  'damaged gzip',
  fc.record({
    text: fc.array(lines, { maxLength: 50 }).map((all) => all.join('\n')),
    at: fc.nat(),
    to: fc.nat(255),
    isCut: fc.boolean(),
  }),
  async ({ text, at, to, isCut }) => {
    const bytes = gzipSync(text)
    const place = at % bytes.length
    bytes[place] = to
    const file = folder.write('log.gz', isCut ? bytes.subarray(0, place) : bytes)
    try {
      let count = 0
      for await (const portion of readLines(file)) count += portion.length
      if (count > text.length + bytes.length + 1) throw new RangeError(`${count} lines`)
    } catch (error) {
      if (!/^can't read .*log\.gz: /.test((error as Error).message)) throw error
    }
  },
)

async function* chunks(bytes: Buffer, size: number): AsyncGenerator<Buffer> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size)
}

const words = mutated(
  fc.constantFrom(
    '100/1m',
    'login=100/1m',
    '1/10ms',
    '5m',
    '0',
    '10',
    '999999',
    'redis://127.0.0.1:6379',
    'rediss://u:p@[::1]/1',
  ),
)

fuzz('command line arguments', fc.oneof(words, texts), (word) => {
  for (const parse of [parseLimit, parseRedisUrl]) {
    try {
      parse(word)
    } catch (error) {
      if (!(error instanceof UsageError)) throw error
      // As printed: on one line.
      const message = printable(error.message, 1000)
      if (message.length > 6100 || STEERING.test(message)) throw new Error(message)
    }
  }
})
