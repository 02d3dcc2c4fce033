// tier: integration
import { readFileSync } from 'node:fs'
import { afterAll, describe, expect, it } from 'vitest'
import { NeededLimits } from '../../../replay/src/counts/needed-limits.ts'
import { formatNeeds } from '../../../replay/src/report/needs.ts'
import {
  commonLine,
  type Entry,
  fullestByBruteForce,
  generateEntries,
  jsonLine,
  logOf,
} from '../../../replay/test/support/logs.ts'
import { replayJson, slidegateHere, temporaryFolder } from '../support/cli.ts'

const folder = temporaryFolder()
afterAll(folder.remove)

const SHARES = [0.9, 0.95, 0.99, 0.999, 1]
const entries = [
  ...generateEntries(1500),
  ...Array.from(
    { length: 300 },
    (_, i): Entry => ({
      timeMs: Date.UTC(2024, 1, 28, 23, 50) + (i % 60) * 1000,
      key: `198.51.100.${i % 97}`,
    }),
  ),
].sort((a, b) => a.timeMs - b.timeMs)
const file = folder.write('needs.log', logOf(entries, commonLine))

function expectedFor(windowMs: number) {
  const keys = Array.from(new Set(entries.map(({ key }) => key)))
  const byKey = keys.map((each) =>
    fullestByBruteForce(
      entries.filter(({ key }) => key === each),
      windowMs,
    ),
  )
  const needs = SHARES.map((share) => {
    const enough = (limit: number) =>
      byKey.filter((units) => units <= limit).length >= share * byKey.length - 1e-9
    let limit = 1
    while (!enough(limit)) limit++
    return { share, limit }
  })
  return { windowMs, callers: byKey.length, exact: true, needs }
}

describe('replay reports which limit would fit', () => {
  it('for 1s, 1m and 1h without a limit', async () => {
    const report = await replayJson([file])
    expect(report).toMatchObject({ requests: 1800, admitted: 1800, denied: 0, limits: [] })
    expect(report.neededLimits).toEqual([1000, 60_000, 3_600_000].map(expectedFor))
  })

  it('for each window of the given limits', async () => {
    const limits = ['5/7s', 'a=9/1m', 'b=20/1m'].flatMap((text) => ['--limit', text])
    const report = await replayJson([file, ...limits])
    expect(report.neededLimits).toEqual([7000, 60_000].map(expectedFor))
  })

  it('and a limit that fits all callers denies nothing', async () => {
    const { needs } = (await replayJson([file])).neededLimits[1]!
    const limit = needs.at(-1)!.limit
    expect(await replayJson([file, '--limit', `${limit}/1m`])).toMatchObject({ denied: 0 })
    expect((await replayJson([file, '--limit', `${limit - 1}/1m`])).denied).toBeGreaterThan(0)
  })

  it('in text and in the HTML report', async () => {
    const needs = expectedFor(60_000).needs.map(({ limit }) => limit)
    const { code, stdout } = await slidegateHere(['replay', file])
    expect(code).toBe(0)
    expect(stdout).toContain('Which limit would fit?')
    expect(stdout).toMatch(new RegExp(`per 1m +${needs.join(' +')}\n`))
    expect(stdout).not.toMatch(/admitted|^ *denied/m)
    const page = `${folder.path}/needs.html`
    await slidegateHere(['replay', file, '--limit', '5/1m', '--report', page])
    expect(readFileSync(page, 'utf8')).toContain('<h2>Which limit would fit?</h2>')
  })

  it('with costs', async () => {
    const lines = [3, 4, 5].map((cost, i) => JSON.stringify({ time: 1_700_000_000 + i, ip: 'a', cost }))
    const costs = folder.write('costs.jsonl', lines.join('\n'))
    const { neededLimits } = await replayJson([costs, '--cost-field', 'cost'])
    expect(neededLimits.map(({ needs }) => needs[0]!.limit)).toEqual([5, 12, 12])
  })

  it('and marks the numbers as inexact with too many callers', () => {
    const needed = new NeededLimits([1000], 2)
    for (const key of ['a', 'b', 'c', 'a']) needed.add(key, 1)
    const [read] = needed.read()
    expect(read).toMatchObject({ callers: 2, exact: false })
    expect(read!.needs.at(-1)).toEqual({ share: 1, limit: 2 })
    expect(formatNeeds([read!]).at(-1)).toContain('too many callers')
  })
})

describe('a replay that skips nearly all lines fails and names the option to check', () => {
  const json = logOf(entries, jsonLine)
  const jsonFile = folder.write('needs.jsonl', json)
  const captured = folder.write(
    'captured.jsonl',
    [0, 1, 2]
      .map((i) => JSON.stringify({ time: i, key: 'k', limiter: 'api', cost: 1, allowed: true }))
      .join('\n'),
  )
  it.each<[string, readonly string[], string]>([
    ['a wrong key', [jsonFile, '--key', 'tenant'], 'no key in field "tenant"; check --key and --format'],
    [
      'a wrong time',
      [jsonFile, '--time-field', 'at'],
      'no readable time in field "at"; check --time-field and --format',
    ],
    ['a wrong cost', [jsonFile, '--cost-field', 'n'], 'no cost in field "n"; check --cost-field'],
    ['a wrong format', [file, '--format', 'json'], 'not a JSON object; check --format'],
    [
      'a key that access logs lack',
      [file, '--key', 'tenant'],
      'no such key: access logs have ip, user, method, path, status; check --key and --format',
    ],
    ['a wrong limiter', [captured, '--key', 'key', '--limiter', 'login'], 'another limiter; check --limiter'],
  ])('%s', async (_, words, message) => {
    const { code, stdout, stderr } = await slidegateHere(['replay', ...words, '--json'])
    expect(code).toBe(1)
    expect(JSON.parse(stdout)).toMatchObject({ requests: 0 })
    expect(stderr).toMatch(/^slidegate: ([\d,]+) of \1 lines were skipped, mostly for this reason: /)
    expect(stderr).toContain(message)
  })

  it('but not if 1 of 100 lines is a request', async () => {
    const lines = (garbage: number) => `${'garbage\n'.repeat(garbage)}${commonLine(entries[0]!)}\n`
    const few = folder.write('few.log', lines(99))
    expect((await slidegateHere(['replay', few])).code).toBe(0)
    const fewer = folder.write('fewer.log', lines(100))
    expect((await slidegateHere(['replay', fewer])).code).toBe(1)
  })
})
