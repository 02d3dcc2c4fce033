// The command slidegate replay: its options checked, the log replayed, the report printed or written.

import { accessSync, constants, type Stats, statSync } from 'node:fs'
import { rename, rm, stat, writeFile } from 'node:fs/promises'
import { basename, dirname } from 'node:path'
import { Presets, SingleBar } from 'cli-progress'
import type { Limit } from 'slidegate'
import { Tally } from './counts/tally.ts'
import { connectRedis, memoryDecider, parseRedisUrl, redisDecider } from './decider.ts'
import { messageOf, UsageError } from './errors.ts'
import { type Compared, countedAs, parseLimit } from './limit-option.ts'
import { ACCESS_LOG_KEYS, type LineOptions, lineParser, type ParseLine } from './log/parse-line.ts'
import { readLines } from './log/read-lines.ts'
import { ReorderBuffer } from './log/reorder-buffer.ts'
import { type Run, replay } from './replay.ts'
import { formatChart, formatReport } from './report/format-report.ts'
import { htmlReport } from './report/html-report.ts'
import { reportOf } from './report/report.ts'
import { parseDuration, printable, printableJson } from './text.ts'

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

export async function runReplay(file: string, flags: ReplayFlags, version: string): Promise<void> {
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
      decider: connection === undefined ? memoryDecider(each) : redisDecider(each, connection),
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
      const page = htmlReport({ version, report, source, key: flags.key, run, compared, nowMs: Date.now() })
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

/**
 * Reads only what one limiter has decided; without a name, what all lines are of.
 *
 * @throws {UsageError} at a line of another, where none was named
 */
function ofLimiter(parse: ParseLine, name: string | undefined): ParseLine {
  let only: string | undefined
  return (text) => {
    const parsed = parse(text)
    if ('bad' in parsed) return parsed
    const { limiter } = parsed
    if (name !== undefined) return limiter === name ? parsed : { bad: 'of another limiter' }
    only ??= limiter
    if (limiter === undefined || limiter === only) return parsed
    const found = [only, limiter].map((each) => `"${printable(each!)}"`).join(' and ')
    throw new UsageError(
      `there are requests of several limiters, such as ${found}; choose one with --limiter`,
    )
  }
}

/** What is told of how far a replay is. */
interface Progress {
  /** So many bytes of the file are read. */
  at(bytes: number): void
  end(): void
}

const NO_PROGRESS: Progress = { at: () => {}, end: () => {} }

/** A bar on the standard error, where that is a terminal and there is an end to be seen. */
async function progressOf(file: string): Promise<Progress> {
  if (file === '-' || process.stderr.isTTY !== true) return NO_PROGRESS
  const found = await stat(file).catch(() => undefined)
  if (found === undefined || !found.isFile()) return NO_PROGRESS
  const bar = new SingleBar(
    {
      format: '  {bar} {percentage}%',
      stream: process.stderr,
      clearOnComplete: true,
      // Whoever ends the command in the midst keeps his terminal as it was; a handler of signals would keep him from ending it.
      linewrap: true,
      gracefulExit: false,
    },
    Presets.shades_classic,
  )
  bar.start(found.size, 0)
  return { at: (bytes) => bar.update(Math.min(bytes, found.size)), end: () => bar.stop() }
}

/**
 * Says before a long replay what its end would say.
 *
 * @throws {UsageError} where the report would take the place of what is read, or of what is no file
 */
function mustBeWritable(report: string, input: string): void {
  const shown = printable(report, 200)
  const [present, read] = [statOf(report), input === '-' ? undefined : statOf(input)]
  if (present !== undefined && present.ino === read?.ino && present.dev === read.dev)
    throw new UsageError(`--report is "${shown}", which is the log that is read`)
  if (present !== undefined && !present.isFile())
    throw new UsageError(`--report is "${shown}", which is no file`)
  try {
    accessSync(dirname(report), constants.W_OK)
  } catch (error) {
    throw new Error(`cannot write ${shown}: ${messageOf(error)}`, { cause: error })
  }
}

/** All of it, or nothing: whoever reads the file finds the former report until the new one is there. */
async function writeReport(file: string, text: string): Promise<void> {
  const unfinished = `${file}.${process.pid}.tmp`
  try {
    await writeFile(unfinished, text, { flag: 'wx' })
    await rename(unfinished, file)
  } catch (error) {
    await rm(unfinished, { force: true })
    throw new Error(`cannot write ${printable(file, 200)}: ${messageOf(error)}`, { cause: error })
  }
}

function statOf(file: string): Stats | undefined {
  return statSync(file, { throwIfNoEntry: false })
}
