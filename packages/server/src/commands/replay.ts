import { type Command, Option } from 'commander'
import type { Limit } from 'slidegate'
import { parseDuration } from '../duration.ts'
import { UsageError } from '../errors.ts'
import { ACCESS_LOG_KEYS } from '../log/access-log.ts'
import { readLines } from '../log/lines.ts'
import { type LineOptions, LOG_FORMATS, lineParser } from '../log/parse-line.ts'
import { type Decider, memoryDecider, redisDecider } from '../replay/decider.ts'
import { formatReport } from '../replay/format-report.ts'
import { asFixedWindow, parseLimit } from '../replay/limit-option.ts'
import { connectRedis, parseRedisUrl, type RedisConnection } from '../replay/redis-connection.ts'
import { ReorderBuffer } from '../replay/reorder-buffer.ts'
import { type Run, replay } from '../replay/replay.ts'
import { type Report, reportOf } from '../replay/report.ts'
import { Tally } from '../replay/tally.ts'
import { printable, printableJson } from '../text.ts'

/** Requests held for reordering at most: some 200 MB. */
const REORDER_CAPACITY = 1_000_000

interface ReplayFlags extends LineOptions {
  readonly limit: string[]
  readonly store?: string
  readonly compare?: 'fixed'
  readonly reorder: string
  readonly top: string
  readonly json?: boolean
}

export function addReplayCommand(program: Command): void {
  program
    .command('replay')
    .description(
      'run an access log through the limiter, at the time of the log, and report what it would have done',
    )
    .argument(
      '<file>',
      'access log, common or combined format or JSON lines, plain or gzip; - for the standard input',
    )
    .requiredOption(
      '--limit <limit>',
      'requests per sliding window, like 100/1m or name=100/1m; repeatable',
      collect,
    )
    .option('--key <field>', `whom to count: ${ACCESS_LOG_KEYS.join(', ')}, or a field of JSON lines`, 'ip')
    .option('--store <url>', 'decide in this Redis, like redis://127.0.0.1:6379 (default: in memory)')
    .addOption(
      new Option('--compare <kind>', 'also report what another kind of limit would have done').choices([
        'fixed',
      ]),
    )
    .option('--json', 'print one JSON object')
    .addOption(new Option('--format <format>', 'format of the lines').choices(LOG_FORMATS).default('auto'))
    .option('--time-field <field>', 'field of JSON lines with the time', 'time')
    .option(
      '--reorder <duration>',
      'how late a line may come and still be decided in the order of time',
      '5m',
    )
    .option('--top <count>', 'how many of the callers denied most to report', '10')
    .action(runReplay)
}

async function runReplay(file: string, flags: ReplayFlags): Promise<void> {
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

function collect(value: string, earlier: string[] = []): string[] {
  return [...earlier, value]
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
