// Bans: a log that counts a key's denials and blocks the key after too many. It isn't a limit.
//
// `after` denials within `within` cause a ban. Its length depends on the level, the number of bans in a row. The level is reset
// `forgetAfter` after the last ban. A log stores the time of each denial that counts, the end of the ban, and the level.

import { checkNames, invalidOption, show } from '../errors.ts'
import { type Duration, parseWindow } from '../runtime/duration.ts'
import { isLimit, wrong } from './declare.ts'
import type { Kind, LogParams } from './limit.ts'
import type { Log } from './limit-set.ts'
import { ObjectLogs } from './logs.ts'

/** Blocks a key after too many denials. */
export interface BanOptions {
  /** How many denials cause a ban, an integer from 1 to 1000. Denials of a blocked key don't count. */
  readonly after: number
  /** The period in which they are counted, from 10 ms to 366 days. */
  readonly within: Duration
  /**
   * How long the key is blocked, from 10 ms to 366 days.
   *
   * Pass one duration, or up to 32 for the first ban, the second and so on. The last one applies to all later bans.
   */
  readonly for: Duration | readonly Duration[]
  /** Resets the level this long after a ban, from 10 ms to 366 days. Default: the longest of `for`. */
  readonly forgetAfter?: Duration
}

const MOST_DENIALS = 1000
const MOST_TIMES = 32

/**
 * Creates the log for a part's bans.
 *
 * @throws {SlidegateError} `invalid_option`, and `invalid_duration` for durations
 */
export function banLog(options: BanOptions): Log {
  return { name: 'b', kind: banKind, role: 'ban', shadow: false, params: parseBan(options), serves: [] }
}

/** The options from which the log was created. */
export function banOptionsOf(log: Log): BanOptions {
  const { after, within, for: times, forgetAfter } = log.params as BanParams
  return { after, within, for: times, forgetAfter }
}

function parseBan(options: BanOptions): BanParams {
  if (typeof options !== 'object' || options === null) {
    const remedy = (options as unknown) === true ? '; to block keys by hand, set overrides: true' : ''
    throw wrong('ban', options, `{ after, within, for }${remedy}`, 'invalid_option')
  }
  checkNames(options, { after: true, within: true, for: true, forgetAfter: true }, 'invalid_option', 'ban')
  const { after, forgetAfter } = options
  if (!isLimit(after, MOST_DENIALS)) {
    throw wrong('ban.after', after, `an integer from 1 to ${MOST_DENIALS}`, 'invalid_option')
  }
  const within = parseWindow(options.within, 'ban.within')
  const times = parseTimes(options.for)
  const forgetMs =
    forgetAfter === undefined ? Math.max(...times) : parseWindow(forgetAfter, 'ban.forgetAfter')
  return { ...ANY, after, within, for: times, forgetAfter: forgetMs }
}

function parseTimes(times: BanOptions['for']): readonly number[] {
  if (typeof times === 'number' || typeof times === 'string') return [parseWindow(times, 'ban.for')]
  if (!Array.isArray(times) || times.length < 1 || times.length > MOST_TIMES) {
    const given = Array.isArray(times) ? `an array of ${times.length}` : show(times)
    throw invalidOption(`ban.for is ${given}; it must be a duration or an array of 1 to ${MOST_TIMES}`, times)
  }
  // Array.from, because map skips holes, which must be rejected.
  return Array.from(times as readonly Duration[], (time, i) => parseWindow(time, `ban.for[${i}]`))
}

interface BanParams extends LogParams {
  readonly after: number
  readonly within: number
  /** Milliseconds, by level. */
  readonly for: readonly number[]
  readonly forgetAfter: number
}

/** Looks like an exhausted limit of 1, so a full memory store keeps the key. */
const ANY: LogParams = { precision: 1, records: 1, windows: [0], limits: [1] }

/** Times are 0 if there is no ban or level. */
interface Ban {
  /** The time of the last write. */
  stampMs: number
  blockedUntilMs: number
  /** The number of bans in a row, and when it is reset. */
  level: number
  levelUntilMs: number
  /** The times of denied requests, oldest first: fewer than `after`. */
  denialsMs: readonly number[]
}

const banKind: Kind<Ban, BanParams> = {
  tag: 'b',

  // One denial may block the next request.
  isOneByOne: true,

  logName: () => 'b',

  params: () => ({ ...ANY, after: 1, within: 0, for: [0], forgetAfter: 0 }),

  words: ({ after, within, forgetAfter, for: times }) => [after, within, forgetAfter, ...times],

  createLogs: () =>
    new ObjectLogs<Ban>(
      () => ({ stampMs: 0, blockedUntilMs: 0, level: 0, levelUntilMs: 0, denialsMs: [] }),
      (ban) => ({ ...ban }),
      ({ denialsMs }) => 128 + 8 * denialsMs.length,
    ),

  newest: (ban) => ban.stampMs,

  /** Keeps the durations that were left at the last write. */
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
      settle(ban, params, nowMs)
      return Math.max(0, ban.blockedUntilMs - nowMs)
    },

    unblock(ban) {
      ban.stampMs = ban.blockedUntilMs = ban.level = ban.levelUntilMs = 0
      ban.denialsMs = []
    },
  },
}

/** The time when the ban and the level have ended and no denial counts. */
function expiresAt({ blockedUntilMs, levelUntilMs, denialsMs }: Ban, { within }: BanParams): number {
  const newestMs = denialsMs.at(-1)
  return Math.max(blockedUntilMs, levelUntilMs, newestMs === undefined ? 0 : newestMs + within)
}

/** The denials that still count. */
function counting({ denialsMs }: Ban, { within }: BanParams, nowMs: number): readonly number[] {
  const oldest = denialsMs.findIndex((deniedMs) => nowMs - deniedMs < within)
  return oldest < 0 ? [] : denialsMs.slice(oldest)
}

function levelAt({ level, levelUntilMs }: Ban, nowMs: number): number {
  return nowMs < levelUntilMs ? level : 0
}

/** Drops everything that has expired. An empty log has no stamp. */
function settle(ban: Ban, params: BanParams, nowMs: number): void {
  ban.denialsMs = counting(ban, params, nowMs)
  if (ban.blockedUntilMs <= nowMs) ban.blockedUntilMs = 0
  if (ban.levelUntilMs <= nowMs) ban.level = ban.levelUntilMs = 0
  const isEmpty = ban.blockedUntilMs === 0 && ban.level === 0 && ban.denialsMs.length === 0
  ban.stampMs = isEmpty ? 0 : nowMs
}
