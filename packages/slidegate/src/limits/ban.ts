// Bans. A ban is a log that counts a key's denials and blocks the key after too many of them. It isn't a limit.
//
// The length of a ban depends on the level, which is the number of bans in a row.

import { checkInteger, checkOptions } from '../errors.ts'
import { type Duration, parseWindow } from '../runtime/duration.ts'
import { wrong } from './declare.ts'
import type { Kind, LogParams } from './limit.ts'
import type { Log } from './limit-set.ts'
import { ObjectLogs } from './logs.ts'

/** Blocks a key after too many denials. */
export interface BanOptions {
  /** How many denials cause a ban, an integer from 1 to 1000. Denials while the key is blocked don't count. */
  readonly after: number
  /** The period in which denials are counted, from 10 ms to 366 days. */
  readonly within: Duration
  /**
   * How long the key is blocked, from 10 ms to 366 days.
   *
   * Pass one duration, or an array of up to 32: for the first ban, the second and so on. The last one applies to all later bans.
   */
  readonly for: Duration | readonly Duration[]
  /** How long an ended ban counts. Until then, the next one is longer. From 10 ms to 366 days. Default: the longest of `for`. */
  readonly forgetAfter?: Duration
}

const MOST_DENIALS = 1000
const MOST_TIMES = 32

/** @throws {SlidegateError} `invalid_option`, and `invalid_duration` for durations */
export function banLog(options: BanOptions): Log {
  checkOptions(options, 'ban', { after: true, within: true, for: true, forgetAfter: true })
  checkInteger('ban.after', options.after, 1, MOST_DENIALS)
  const within = parseWindow(options.within, 'ban.within')
  const times = parseTimes(options.for)
  const { after, forgetAfter = Math.max(...times) } = options
  const forgetMs = parseWindow(forgetAfter, 'ban.forgetAfter')
  const params: BanParams = { ...ANY, after, within, for: times, forgetAfter: forgetMs }
  return { name: 'b', kind: banKind, role: 'ban', shadow: false, params, serves: [] }
}

export function banOptionsOf(log: Log): BanOptions {
  const { after, within, for: times, forgetAfter } = log.params as BanParams
  return { after, within, for: times, forgetAfter }
}

function parseTimes(times: BanOptions['for']): readonly number[] {
  if (typeof times === 'number' || typeof times === 'string') return [parseWindow(times, 'ban.for')]
  if (!Array.isArray(times) || times.length < 1 || times.length > MOST_TIMES) {
    throw wrong('ban.for', times, `a duration or an array of 1 to ${MOST_TIMES}`, 'invalid_option')
  }
  // `map` would skip holes in the array.
  return Array.from(times as readonly Duration[], (time, i) => parseWindow(time, `ban.for[${i}]`))
}

interface BanParams extends LogParams {
  readonly after: number
  readonly within: number
  /** Milliseconds, by level. */
  readonly for: readonly number[]
  readonly forgetAfter: number
}

/** Parameters of an exhausted limit of 1. With these, a full memory store doesn't evict the key. */
const ANY: LogParams = { precision: 1, records: 1, windows: [0], limits: [1] }

interface Ban {
  /** The time of the last write. */
  stampMs: number
  /** 0 if there is no ban. */
  blockedUntilMs: number
  /** The number of bans in a row, and when that number is reset. */
  level: number
  levelUntilMs: number
  /** The times of denied requests, oldest first: fewer than `after`. */
  denialsMs: readonly number[]
}

const banKind: Kind<Ban, BanParams> = {
  tag: 'b',
  // The denial of one request may block the next.
  isOneByOne: true,
  logName: () => 'b',
  params: () => ({ ...ANY, after: 1, within: 0, for: [0], forgetAfter: 0 }),
  words: ({ after, within, forgetAfter, for: times }) => [after, within, forgetAfter, ...times],

  createLogs: () =>
    new ObjectLogs<Ban>(
      () => ({ stampMs: 0, blockedUntilMs: 0, level: 0, levelUntilMs: 0, denialsMs: [] }),
      ({ denialsMs }) => 128 + 8 * denialsMs.length,
    ),

  newest: (ban) => ban.stampMs,

  /** Shifts all times. Each is then as far from now as it was from the last write. */
  restamp(ban, _params, nowMs) {
    const shifted = (atMs: number) => (atMs === 0 ? 0 : Math.max(0, atMs + nowMs - ban.stampMs))
    ban.blockedUntilMs = shifted(ban.blockedUntilMs)
    ban.levelUntilMs = shifted(ban.levelUntilMs)
    ban.denialsMs = ban.denialsMs.map(shifted)
    ban.stampMs = nowMs
  },

  check(ban, params, nowMs, used) {
    used[0] = expiresAt(ban, params) > nowMs ? 1 : 0
  },

  commit() {},

  retryAfter: (ban, params, _i, nowMs) => Math.max(0, expiresAt(ban, params) - nowMs),
  resetAfter: (ban, params, _i, nowMs) => Math.max(0, expiresAt(ban, params) - nowMs),
  refund: () => 0,
  expiresAt,

  ban: {
    look(ban, params, nowMs) {
      return {
        blockedMs: Math.max(0, ban.blockedUntilMs - nowMs),
        // Nothing is written during a ban, so the ban began with the last write.
        ...(ban.blockedUntilMs > nowMs && { sinceMs: ban.stampMs }),
        level: levelAt(ban, nowMs),
        denials: counting(ban, params, nowMs).length,
      }
    },

    denied(ban, params, nowMs, count) {
      const { after, for: times, forgetAfter } = params
      const denialsMs = counting(ban, params, nowMs)
      if (denialsMs.length + count < after) {
        ban.denialsMs = [...denialsMs, ...new Array<number>(count).fill(nowMs)]
      } else {
        const level = levelAt(ban, nowMs)
        ban.blockedUntilMs = nowMs + times[Math.min(level, times.length - 1)]!
        ban.level = level + 1
        ban.levelUntilMs = ban.blockedUntilMs + forgetAfter
        ban.denialsMs = []
      }
      ban.stampMs = nowMs
      return Math.max(0, ban.blockedUntilMs - nowMs)
    },

    unblock(ban) {
      ban.stampMs = ban.blockedUntilMs = ban.level = ban.levelUntilMs = 0
      ban.denialsMs = []
    },
  },
}

/** The time from which there is no ban, no level and no denial that counts. */
function expiresAt({ blockedUntilMs, levelUntilMs, denialsMs }: Ban, { within }: BanParams): number {
  return Math.max(blockedUntilMs, levelUntilMs, (denialsMs.at(-1) ?? -within) + within)
}

function counting({ denialsMs }: Ban, { within }: BanParams, nowMs: number): readonly number[] {
  const oldest = denialsMs.findIndex((deniedMs) => nowMs - deniedMs < within)
  return oldest < 0 ? [] : denialsMs.slice(oldest)
}

function levelAt({ level, levelUntilMs }: Ban, nowMs: number): number {
  return nowMs < levelUntilMs ? level : 0
}
