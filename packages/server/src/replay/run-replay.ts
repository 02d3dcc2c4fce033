import type { Limit } from 'slidegate'
import { parseDuration } from '../duration.ts'
import { UsageError } from '../errors.ts'
import { ACCESS_LOG_KEYS } from '../log/access-log.ts'
import { readLines } from '../log/lines.ts'
import { type LineOptions, lineParser } from '../log/parse-line.ts'
import { printable, printableJson } from '../text.ts'
import { type Decider, memoryDecider, redisDecider } from './decider.ts'
import { formatReport } from './format-report.ts'
import { asFixedWindow, parseLimit } from './limit-option.ts'
import { connectRedis, parseRedisUrl, type RedisConnection } from './redis-connection.ts'
import { ReorderBuffer } from './reorder-buffer.ts'
import { type Run, replay } from './replay.ts'
import { type Report, reportOf } from './report.ts'
import { Tally } from './tally.ts'

/** Requests held for reordering at most: some 200 MB. */
const REORDER_CAPACITY = 1_000_000

/** What the command was given. */
export interface ReplayFlags extends LineOptions {
  readonly limit: string[]
  readonly store?: string
  readonly compare?: 'fixed'
  readonly reorder: string
  readonly top: string
  readonly json?: boolean
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
  const url = flags.store === undefined ? undefined : parseRedisUrl(flags.store)
  const connection = url && (await connectRedis(url))
  try {
    const run = newRun(limits, connection)
    const fixed = flags.compare && newRun(limits.map(asFixedWindow), connection)
    const runs = fixed === undefined ? [run] : [run, fixed]
    const replayed = await replay(readLines(file), lineParser(flags), buffer, runs)
    print(reportOf(replayed, buffer, top, run, fixed), flags.json)
  } finally {
    await connection?.close()
  }
}

function newRun(limits: readonly Limit[], connection: RedisConnection | undefined): Run {
  const decider: Decider =
    connection === undefined
      ? memoryDecider(limits)
      : redisDecider(limits, connection.redis, connection.prefix)
  return { decider, tally: new Tally(limits) }
}

function print(report: Report, asJson = false): void {
  process.stdout.write(asJson ? `${printableJson(report)}\n` : formatReport(report))
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
