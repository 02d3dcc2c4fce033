// tier: integration
import { gzipSync } from 'node:zlib'
import fc from 'fast-check'
import { slidingCounter } from 'slidegate'
import { afterAll, describe, expect, it } from 'vitest'
import type { Need } from '../../replay/src/counts/needed-limits.ts'
import { Results } from '../../replay/src/counts/results.ts'
import { memoryDecider } from '../../replay/src/decider.ts'
import { lineParser } from '../../replay/src/log/parse-line.ts'
import { ReorderBuffer } from '../../replay/src/log/reorder-buffer.ts'
import { replay } from '../../replay/src/replay.ts'
import type { Report } from '../../replay/src/report/report.ts'
import {
  combinedLine,
  commonLine,
  type Entry,
  generateEntries,
  jsonLine,
  logOf,
} from '../../replay/test/support/logs.ts'
import { slidegateHere, temporaryFolder } from '../../server/test/support/cli.ts'
import type { KindName } from '../src/simulator/choices.ts'
import { bytesOf, type Log, type ReadOptions, readLog } from '../src/simulator/log.ts'
import { sampleLog } from '../src/simulator/sample.ts'
import { needsOfLog, type Simulated, simulate, timelineOf } from '../src/simulator/simulate.ts'

const folder = temporaryFolder()
afterAll(folder.remove)

const ACCESS_LOG: ReadOptions = { format: 'auto', key: 'ip', timeField: 'time' }
const EVIL = '<img/src=x/onerror=alert(1)>'

async function read(
  content: string | Uint8Array<ArrayBuffer>,
  options = ACCESS_LOG,
  maxLines?: number,
): Promise<Log> {
  const log = await readLog(
    bytesOf(new Blob([content]), () => {}),
    options,
    async () => true,
    maxLines,
  )
  return log!
}

function finish<Result>(work: Generator<unknown, Result, void>): Result {
  for (;;) {
    const { done, value } = work.next()
    if (done) return value
  }
}

function simulated(log: Log, kind: KindName, limit: number, windowMs: number): Simulated {
  return finish(simulate(log, [kind], limit, windowMs))[0]!
}

function needs(log: Log, windowMs: number): readonly Need[] {
  return finish(needsOfLog(log, windowMs))
}

/** Bursts, gaps, odd callers, and lines that are out of order, late or invalid. */
function hostileLog(): string {
  const start = Date.UTC(2024, 1, 28, 23, 50)
  const bursts: Entry[] = [59, 60, 119, 120, 121].flatMap((second) =>
    new Array(30).fill({ timeMs: start + second * 1000, key: '2001:db8:1:2::7' }),
  )
  const rare = Array.from({ length: 500 }, (_, i) => ({ timeMs: start + i * 3000, key: `caller-${i % 170}` }))
  const entries = [...generateEntries(4000), ...bursts, ...rare].sort((a, b) => a.timeMs - b.timeMs)
  const evil = entries.toSpliced(2000, 0, { timeMs: entries[2000]!.timeMs, key: EVIL })
  const lines = evil.map((entry, i) => [commonLine, combinedLine, jsonLine][i % 3]!(entry))
  lines.splice(1000, 0, '', 'garbage', '{"time":1}', commonLine({ timeMs: start, key: '1.1.1.1' }))
  return lines.join('\n')
}

async function replayed(file: string, words: readonly string[]): Promise<Report> {
  const { code, stdout } = await slidegateHere(['replay', file, '--json', ...words])
  expect(code).toBe(0)
  return JSON.parse(stdout) as Report
}

function countsOf({ admitted, denied, fullest }: Simulated): object {
  return { admitted, denied, fullest: fullest?.units ?? 0 }
}

type Counted = Pick<Report, 'admitted' | 'denied' | 'limits'>

function countsIn({ admitted, denied, limits }: Counted): object {
  return { admitted, denied, fullest: limits[0]!.fullestWindow }
}

describe('the simulator decides like slidegate replay', () => {
  it.each([
    ['1/1s', 1, 1000],
    ['3/7s', 3, 7000],
    ['10/1m', 10, 60_000],
    ['40/1m', 40, 60_000],
    ['60/1h', 60, 3_600_000],
    ['500/1d', 500, 86_400_000],
  ])('%s', async (text, limit, windowMs) => {
    const content = hostileLog()
    const file = folder.write('hostile.log', content)
    const log = await read(content)
    const report = await replayed(file, ['--limit', text, '--compare', 'fixed'])
    const buckets = await replayed(file, ['--limit', text, '--compare', 'bucket'])
    const sliding = simulated(log, 'sliding', limit, windowMs)
    expect(countsOf(sliding)).toEqual(countsIn(report))
    expect(countsOf(simulated(log, 'fixed', limit, windowMs))).toEqual(countsIn(report.compare!))
    expect(countsOf(simulated(log, 'bucket', limit, windowMs))).toEqual(countsIn(buckets.compare!))
    expect(sliding.deniedMost.map(({ key, denied }) => ({ key, denied }))).toEqual(report.topDenied)
    expect(sliding.denied).toBeGreaterThan(0)
    expect(log.timesMs.length).toBe(report.requests)
    expect(log.skipped.count).toBe(report.skipped)
    expect(Object.fromEntries(log.skipped.reasons)).toEqual(report.skippedReasons)
    expect(log.skipped.first).toEqual(report.badLines)
    expect(new Date(log.fromMs).toISOString()).toBe(report.span!.from)
    expect(new Date(log.toMs).toISOString()).toBe(report.span!.to)
  })

  it('with costs', async () => {
    const lines = generateEntries(3000).map(({ timeMs, key }, i) =>
      JSON.stringify({ time: timeMs, key, units: 1 + ((i * 7) % 9) }),
    )
    const content = lines.join('\n')
    const file = folder.write('costs.log', content)
    const log = await read(content, { ...ACCESS_LOG, key: 'key', costField: 'units' })
    const words = ['--limit', '50/1m', '--key', 'key', '--cost-field', 'units']
    const report = await replayed(file, [...words, '--compare', 'fixed'])
    expect(countsOf(simulated(log, 'sliding', 50, 60_000))).toEqual(countsIn(report))
    expect(countsOf(simulated(log, 'fixed', 50, 60_000))).toEqual(countsIn(report.compare!))
    expect(report.limits[0]!.fullestWindow).toBe(50)
  })

  it('for counters, which only the parts of replay can run', async () => {
    const content = hostileLog()
    const limits = [slidingCounter({ limit: 10, window: '1m' })]
    const run = { decider: memoryDecider(limits), results: new Results(limits) }
    async function* portions() {
      yield content.split('\n')
    }
    await replay(portions(), lineParser(ACCESS_LOG), new ReorderBuffer({ boundMs: 300_000, capacity: 1e6 }), [
      run,
    ])
    const { admitted, denied } = run.results
    const counter = simulated(await read(content), 'counter', 10, 60_000)
    expect(countsOf(counter)).toEqual(countsIn({ admitted, denied, limits: run.results.limits() }))
    expect(denied).toBeGreaterThan(0)
  })

  it('for more callers than fit in one store', async () => {
    const entries = Array.from({ length: 60_000 }, (_, i) => ({
      timeMs: 1_700_000_000_000 + i,
      key: `c${i % 25_000}`,
    }))
    const content = logOf(entries, jsonLine)
    const report = await replayed(folder.write('many.log', content), ['--limit', '2/1h'])
    const sliding = simulated(await read(content), 'sliding', 2, 3_600_000)
    expect(countsOf(sliding)).toEqual(countsIn(report))
    expect(sliding.deniedCallers).toBe(10_000)
  })
})

describe('the results of a simulation', () => {
  it('admit a whole burst at a boundary with fixed windows, and half of it with sliding ones', async () => {
    const minute = Date.UTC(2024, 0, 1, 12, 0)
    const times = [...new Array(10).fill(minute - 1000), ...new Array(10).fill(minute)]
    const log = await read(
      logOf(
        times.map((timeMs) => ({ timeMs, key: EVIL })),
        commonLine,
      ),
    )
    expect(simulated(log, 'fixed', 10, 60_000)).toMatchObject({
      denied: 0,
      deniedCallers: 0,
      fullest: { units: 20, key: EVIL, atMs: minute },
    })
    expect(simulated(log, 'sliding', 10, 60_000)).toMatchObject({
      denied: 10,
      deniedCallers: 1,
      deniedMost: [{ key: EVIL, denied: 10, requests: 20 }],
      fullest: { units: 10, key: EVIL, atMs: minute - 1000 },
    })
  })

  it('add up to the totals, and cover as many steps as the chart', async () => {
    const log = await read(hostileLog())
    const { admitted, denied, admittedOverTime, deniedOverTime } = simulated(log, 'sliding', 10, 60_000)
    const sum = (column: Uint32Array) => column.reduce((all, each) => all + each, 0)
    expect([sum(admittedOverTime), sum(deniedOverTime)]).toEqual([admitted, denied])
    const { steps } = timelineOf(log)
    expect(steps).toBeGreaterThan(100)
    expect(steps).toBeLessThanOrEqual(240)
    expect(admittedOverTime.length).toBe(steps)
  })

  it('pause often, so that a run can stop', async () => {
    const log = await read(hostileLog())
    const requests = log.timesMs.length
    const pauses = Array.from(simulate(log, ['sliding', 'fixed'], 10, 60_000))
    expect(pauses.length).toBeGreaterThanOrEqual(Math.floor(requests / 512))
    expect(pauses.toSorted((a, b) => a - b)).toEqual(pauses)
    expect(Array.from(needsOfLog(log, 60_000)).length).toBeGreaterThanOrEqual(Math.floor(requests / 512))
  })

  it('find the lowest limit that never denies a share of callers', async () => {
    const request = fc.record({
      key: fc.constantFrom('a', 'b', 'c', 'd', 'e'),
      timeMs: fc.nat(5000).map((ms) => ms + 1e12),
    })
    await fc.assert(
      fc.asyncProperty(
        fc.array(request, { minLength: 1, maxLength: 120 }),
        fc.integer({ min: 10, max: 2000 }),
        async (entries, windowMs) => {
          const log = await read(
            logOf(
              entries.toSorted((a, b) => a.timeMs - b.timeMs),
              jsonLine,
            ),
          )
          const callers = log.callers.length
          for (const { share, limit } of needs(log, windowMs)) {
            const isEnough = (tried: number) =>
              simulated(log, 'sliding', tried, windowMs).deniedCallers <= (1 - share) * callers + 1e-9
            expect(isEnough(limit)).toBe(true)
            if (limit > 1) expect(isEnough(limit - 1)).toBe(false)
          }
        },
      ),
      { numRuns: 60 },
    )
  })

  it('differ between kinds for the sample', async () => {
    const log = (await readLog(
      bytesOf(sampleLog(), () => {}),
      ACCESS_LOG,
      async () => true,
    ))!
    expect(log.skipped.count).toBe(0)
    const percent = (kind: KindName) => simulated(log, kind, 100, 60_000).fullest!.units
    expect(percent('sliding')).toBe(100)
    expect(percent('fixed')).toBe(200)
    expect(percent('bucket')).toBeGreaterThan(150)
  })
})

describe('a log', () => {
  it('reads the same from a gzip file', async () => {
    const content = hostileLog()
    expect(await read(new Uint8Array(gzipSync(content)))).toEqual(await read(content))
  })

  it.each([
    ['that is cut short', gzipSync(hostileLog()).subarray(0, 5000)],
    ['with a wrong byte', gzipSync(hostileLog()).fill(7, 3000, 3100)],
  ])('in a gzip file %s is rejected', async (_, bytes) => {
    await expect(read(new Uint8Array(bytes))).rejects.toThrow(
      /the gzip file is damaged or has several members/,
    )
  })

  it.each([
    ['an empty file', '', 0],
    ['an empty gzip file', new Uint8Array(gzipSync('')), 0],
    ['invalid lines only', 'one\ntwo', 2],
    ['binary data', Uint8Array.from({ length: 5000 }, (_, i) => (i * 7) % 251), undefined],
  ])('with %s has no requests', async (_, content, lines) => {
    const log = await read(content)
    expect(log.timesMs.length).toBe(0)
    expect(log.skipped.count).toBe(lines ?? log.lines)
    expect(simulated(log, 'sliding', 1, 1000)).toMatchObject({ admitted: 0, denied: 0, fullest: null })
    expect(needs(log, 1000).map(({ limit }) => limit)).toEqual([1, 1, 1, 1, 1])
  })

  it('ends at the maximum number of lines', async () => {
    const content = logOf(generateEntries(1000), commonLine)
    expect(await read(content, ACCESS_LOG, 600)).toMatchObject({ lines: 600, isCut: true })
    expect(await read(content, ACCESS_LOG, 1000)).toMatchObject({ lines: 1000, isCut: false })
  })

  it('stops reading when it is canceled', async () => {
    const chunks = bytesOf(new Blob([hostileLog()]), () => {})
    expect(await readLog(chunks, ACCESS_LOG, async () => false)).toBeUndefined()
  })

  it('with captured requests is limited to one limiter', async () => {
    const line = (limiter: string, second: number, cost: number) =>
      JSON.stringify({ time: 1_700_000_000 + second, limiter, key: 'k', cost, allowed: true })
    const content = [line('api', 0, 2), line('login', 1, 1), line('api', 2, 3)].join('\n')
    const options = { ...ACCESS_LOG, key: 'key' }
    const first = await read(content, options)
    expect(first).toMatchObject({ limiter: 'api', limiters: ['api', 'login'] })
    expect(Array.from(first.costs!)).toEqual([2, 3])
    expect(Object.fromEntries(first.skipped.reasons)).toEqual({ 'another limiter': 1 })
    const other = await read(content, { ...options, limiter: 'login' })
    expect(other).toMatchObject({ limiter: 'login', limiters: ['api', 'login'], costs: undefined })
    expect(other.timesMs.length).toBe(1)
  })

  it('lists the fields to count by', async () => {
    const { fields } = await read(
      'garbage\n{"time":1,"client":{"ip":"1.1.1.1"},"user":"a","<b>":1}\n{"later":1}',
    )
    expect(fields).toEqual(['time', 'client.ip', 'user', '<b>'])
  })
})
