// slidegate replay: checks options, replays the log, and prints or writes the report.

import { accessSync, constants, type Stats, statSync } from 'node:fs'
import { rename, rm, stat, writeFile } from 'node:fs/promises'
import { basename, dirname } from 'node:path'
import { Presets, SingleBar } from 'cli-progress'
import type { Limit } from 'slidegate'
import { NeededLimits } from './counts/needed-limits.ts'
import { Results } from './counts/results.ts'
import { ADMIT_ALL, connectRedis, memoryDecider, parseRedisUrl, redisDecider } from './decider.ts'
import { messageOf, UsageError } from './errors.ts'
import { type Compared, countedAs, parseLimit } from './limit-option.ts'
import { ACCESS_LOG_KEYS, type LineOptions, lineParser, type ParseLine } from './log/parse-line.ts'
import { readLines } from './log/read-lines.ts'
import { ReorderBuffer } from './log/reorder-buffer.ts'
import { unusableLog } from './log/unusable.ts'
import { type Run, replay } from './replay.ts'
import { formatChart, formatReport } from './report/format-report.ts'
import { htmlReport } from './report/html-report.ts'
import { reportOf } from './report/report.ts'
import { parseDuration, printable, printableJson } from './text.ts'

/** Maximum number of requests held for reordering (about 200 MB). */
const REORDER_CAPACITY = 1_000_000

/** Window lengths for which the needed limits are computed if there is no --limit. */
const WINDOWS_MS = [1000, 60_000, 3_600_000]

export interface ReplayFlags extends LineOptions {
  readonly limit?: string[]
  readonly store?: string
  readonly compare?: Compared
  readonly limiter?: string
  readonly reorder: string
  readonly top: string
  readonly json?: boolean
  readonly chart?: boolean
  /** File for the HTML report. */
  readonly report?: string
}

export async function runReplay(file: string, flags: ReplayFlags, version: string): Promise<void> {
  const limits = (flags.limit ?? []).map(parseLimit)
  if (limits.length === 0) mustHaveNone(flags, ['compare', 'store', 'report'])
  const buffer = new ReorderBuffer({ boundMs: parseReorder(flags.reorder), capacity: REORDER_CAPACITY })
  const top = parseTop(flags.top)
  if (flags.format === 'clf' && !ACCESS_LOG_KEYS.includes(flags.key)) {
    throw new UsageError(
      `invalid --key "${printable(flags.key)}"; for access logs it must be one of ${ACCESS_LOG_KEYS.join(', ')}`,
    )
  }
  if (flags.report !== undefined) mustBeWritable(flags.report, file)
  const url = flags.store === undefined ? undefined : parseRedisUrl(flags.store)
  const connection = url && (await connectRedis(url))
  try {
    const { compare, json = false, chart = !json && process.stdout.isTTY === true } = flags
    const newRun = (each: readonly Limit[]): Run => ({
      decider:
        each.length === 0
          ? ADMIT_ALL
          : connection === undefined
            ? memoryDecider(each)
            : redisDecider(each, connection),
      results: new Results(each, flags.report !== undefined),
    })
    const run = newRun(limits)
    const compared = compare && newRun(limits.map((limit) => countedAs(compare, limit)))
    const runs = compared === undefined ? [run] : [run, compared]
    const parse = ofLimiter(lineParser(flags), flags.limiter)
    const progress = await progressOf(file)
    const lines = readLines(file, (bytes) => progress.at(bytes))
    const needed = new NeededLimits(limits.length === 0 ? WINDOWS_MS : limits.map(({ windowMs }) => windowMs))
    const replayed = await replay(lines, parse, buffer, runs, needed).finally(() => progress.end())
    const report = reportOf(replayed, buffer, top, needed.read(), run, compared, compare)
    if (flags.report !== undefined) {
      const source = file === '-' ? 'standard input' : basename(file)
      const page = htmlReport({ version, report, source, key: flags.key, run, compared, nowMs: Date.now() })
      await writeReport(flags.report, page)
    }
    process.stdout.write(
      json
        ? `${printableJson(report)}\n`
        : formatReport(report, chart ? formatChart(run.results.overTime) : []),
    )
    const problem = unusableLog(report.requests, replayed.skipped)
    if (problem !== undefined) throw new Error(problem)
  } finally {
    await connection?.close()
  }
}

/** @throws {UsageError} if one of these options is set; all of them require `--limit` */
function mustHaveNone(flags: ReplayFlags, names: readonly (keyof ReplayFlags)[]): void {
  const name = names.find((each) => flags[each] !== undefined)
  if (name !== undefined) throw new UsageError(`--${name} needs a --limit, such as --limit 100/1m`)
}

function parseReorder(text: string): number {
  const ms = parseDuration(text)
  if (ms === undefined)
    throw new UsageError(`invalid --reorder "${printable(text)}"; use a value such as 30s, 5m or 0`)
  return ms
}

function parseTop(text: string): number {
  if (!/^\d{1,6}$/.test(text))
    throw new UsageError(`invalid --top "${printable(text)}"; it must be a whole number from 0 to 999999`)
  return Number(text)
}

/**
 * Keeps the requests for one limiter. If no name is given, all requests must be for the same limiter.
 *
 * @throws {UsageError} if no name was given and there are requests for a second limiter
 */
function ofLimiter(parse: ParseLine, name: string | undefined): ParseLine {
  let only: string | undefined
  return (text) => {
    const parsed = parse(text)
    if ('bad' in parsed) return parsed
    const { limiter } = parsed
    if (name !== undefined) return limiter === name ? parsed : { bad: 'another limiter' }
    only ??= limiter
    if (limiter === undefined || limiter === only) return parsed
    const found = [only, limiter].map((each) => `"${printable(each!)}"`).join(' and ')
    throw new UsageError(
      `the log has requests for several limiters, such as ${found}; choose one with --limiter`,
    )
  }
}

/** Shows the progress of a replay. */
interface Progress {
  /** @param bytes bytes of the file read so far */
  at(bytes: number): void
  end(): void
}

const NO_PROGRESS: Progress = { at: () => {}, end: () => {} }

/** Shows a progress bar if standard error is a terminal. */
async function progressOf(file: string): Promise<Progress> {
  if (file === '-' || process.stderr.isTTY !== true) return NO_PROGRESS
  const found = await stat(file).catch(() => undefined)
  if (found === undefined || !found.isFile()) return NO_PROGRESS
  const bar = new SingleBar(
    {
      format: '  {bar} {percentage}%',
      stream: process.stderr,
      clearOnComplete: true,
      // Doesn't change the terminal's settings, because Ctrl-C wouldn't restore them. A signal handler could, but it
      // would keep Ctrl-C from ending the process.
      linewrap: true,
      gracefulExit: false,
    },
    Presets.shades_classic,
  )
  bar.start(found.size, 0)
  return { at: (bytes) => bar.update(Math.min(bytes, found.size)), end: () => bar.stop() }
}

/**
 * Checks that the report can be written, before a long replay rather than after it.
 *
 * @throws {UsageError} if the report would overwrite the log or something that isn't a file
 */
function mustBeWritable(report: string, input: string): void {
  const shown = printable(report, 200)
  const [present, read] = [statOf(report), input === '-' ? undefined : statOf(input)]
  if (present !== undefined && present.ino === read?.ino && present.dev === read.dev)
    throw new UsageError(`invalid --report "${shown}": this is the log to replay`)
  if (present !== undefined && !present.isFile())
    throw new UsageError(`invalid --report "${shown}": not a regular file`)
  try {
    accessSync(dirname(report), constants.W_OK)
  } catch (error) {
    throw new Error(`can't write ${shown}: ${messageOf(error)}`, { cause: error })
  }
}

/** Writes the report atomically: readers see the previous file until the new one is complete. */
async function writeReport(file: string, text: string): Promise<void> {
  const unfinished = `${file}.${process.pid}.tmp`
  try {
    await writeFile(unfinished, text, { flag: 'wx' })
    await rename(unfinished, file)
  } catch (error) {
    await rm(unfinished, { force: true })
    throw new Error(`can't write ${printable(file, 200)}: ${messageOf(error)}`, { cause: error })
  }
}

function statOf(file: string): Stats | undefined {
  return statSync(file, { throwIfNoEntry: false })
}
