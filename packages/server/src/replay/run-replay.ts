import { basename } from 'node:path'
import type { Limit } from 'slidegate'
import { parseDuration } from '../duration.ts'
import { UsageError } from '../errors.ts'
import { ACCESS_LOG_KEYS } from '../log/access-log.ts'
import { readLines } from '../log/lines.ts'
import { type LineOptions, lineParser } from '../log/parse-line.ts'
import { printable, printableJson } from '../text.ts'
import { type Decider, memoryDecider, redisDecider } from './decider.ts'
import { formatChart } from './format-chart.ts'
import { formatReport } from './format-report.ts'
import { htmlReport } from './html-report.ts'
import { type Compared, countedAs, parseLimit } from './limit-option.ts'
import { ofLimiter } from './of-limiter.ts'
import { progressOf } from './progress.ts'
import { connectRedis, parseRedisUrl, type RedisConnection } from './redis-connection.ts'
import { ReorderBuffer } from './reorder-buffer.ts'
import { type Run, replay } from './replay.ts'
import { reportOf } from './report.ts'
import { mustBeWritable, writeReport } from './report-file.ts'
import { Tally } from './tally.ts'

/** Requests held for reordering at most: some 200 MB. */
const REORDER_CAPACITY = 1_000_000

/** What the command was given. */
export interface ReplayFlags extends LineOptions {
  readonly limit: string[]
  readonly store?: string
  readonly compare?: Compared
  readonly limiter?: string
  readonly reorder: string
  readonly top: string
  readonly json?: boolean
  readonly chart?: boolean
  /** The file of the report as a page. */
  readonly report?: string
}

export async function runReplay(file: string, flags: ReplayFlags): Promise<void> {
  const limits = flags.limit.map(parseLimit)
  const buffer = new ReorderBuffer({ boundMs: parseReorder(flags.reorder), capacity: REORDER_CAPACITY })
  const top = parseTop(flags.top)
  if (flags.format === 'clf' && !ACCESS_LOG_KEYS.includes(flags.key)) {
    throw new UsageError(
      `--key is "${printable(flags.key)}"; for access logs it is one of ${ACCESS_LOG_KEYS.join(', ')}`,
    )
  }
  if (flags.report !== undefined) mustBeWritable(flags.report, file)
  const url = flags.store === undefined ? undefined : parseRedisUrl(flags.store)
  const connection = url && (await connectRedis(url))
  try {
    const { compare, json = false, chart = !json && process.stdout.isTTY === true } = flags
    const newRun = (each: readonly Limit[]): Run => ({
      decider: deciderOf(each, connection),
      tally: new Tally(each, flags.report !== undefined),
    })
    const run = newRun(limits)
    const compared = compare && newRun(limits.map((limit) => countedAs(compare, limit)))
    const runs = compared === undefined ? [run] : [run, compared]
    const parse = ofLimiter(lineParser(flags), flags.limiter)
    const progress = await progressOf(file)
    const lines = readLines(file, (bytes) => progress.at(bytes))
    const replayed = await replay(lines, parse, buffer, runs).finally(() => progress.end())
    const report = reportOf(replayed, buffer, top, run, compared, compare)
    if (flags.report !== undefined) {
      const source = file === '-' ? 'the standard input' : basename(file)
      const page = htmlReport({ report, source, key: flags.key, run, compared, nowMs: Date.now() })
      await writeReport(flags.report, page)
    }
    process.stdout.write(
      json
        ? `${printableJson(report)}\n`
        : formatReport(report, chart ? formatChart(run.tally.overTime) : []),
    )
  } finally {
    await connection?.close()
  }
}

function deciderOf(limits: readonly Limit[], connection: RedisConnection | undefined): Decider {
  return connection === undefined
    ? memoryDecider(limits)
    : redisDecider(limits, connection.redis, connection.prefix)
}

function parseReorder(text: string): number {
  const ms = parseDuration(text)
  if (ms === undefined) throw new UsageError(`--reorder is "${printable(text)}"; write it like 30s, 5m or 0`)
  return ms
}

function parseTop(text: string): number {
  if (!/^\d{1,6}$/.test(text))
    throw new UsageError(`--top is "${printable(text)}"; it must be a whole number from 0 to 999999`)
  return Number(text)
}
