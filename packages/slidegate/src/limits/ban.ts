// Bans: no limit, but a log that counts a key's denials, and blocks it after too many.

import { checkNames, invalidOption, show } from '../errors.ts'
import { type Duration, parseWindow } from '../runtime/duration.ts'
import type { Kind, LogParams } from './limit.ts'
import type { ExtraLog } from './limit-set.ts'
import { ObjectLogs } from './logs.ts'

/** When a key is blocked for being denied too often, and for how long. */
export interface BanOptions {
  /** Denials that bring a ban on: an integer from 1 to 1000. Those of a key that is blocked do not count. */
  readonly after: number
  /** Within what time they have to come, from 10 ms to 366 days. */
  readonly within: Duration
  /**
   * For how long the key is then blocked: one duration, or 1 to 32 of them for the first ban, the second and so on; the
   * last counts for all later ones. Each from 10 ms to 366 days.
   */
  readonly for: Duration | readonly Duration[]
  /**
   * How long after the end of a ban the next is a first one again, from 10 ms to 366 days. Default: the longest of
   * `for`.
   */
  readonly forgetAfter?: Duration
}

const MOST_DENIALS = 1000
const MOST_TIMES = 32

/**
 * The log of a part's bans.
 *
 * @throws {SlidegateError} `invalid_option`, and `invalid_window` for durations
 */
export function banLog(options: BanOptions): ExtraLog {
  return { name: 'b', role: 'ban', kind: banKind, params: parseBan(options) }
}

/** What the log was made by. */
export function banOptionsOf(log: ExtraLog): BanOptions {
  const { after, within, for: times, forgetAfter } = log.params as BanParams
  return { after, within, for: times, forgetAfter }
}

function parseBan(options: BanOptions): BanParams {
  if (typeof options !== 'object' || options === null) {
    const remedy = (options as unknown) === true ? '; to block keys by hand, set overrides: true' : ''
    throw invalidOption(`ban is ${show(options)}; it must be { after, within, for }${remedy}`, options)
  }
  checkNames(options, { after: true, within: true, for: true, forgetAfter: true }, 'invalid_option', 'ban')
  const { after, within, for: times, forgetAfter } = options
  if (!Number.isSafeInteger(after) || after < 1 || after > MOST_DENIALS) {
    throw invalidOption(`ban.after is ${show(after)}; it must be an integer from 1 to ${MOST_DENIALS}`, after)
  }
  const withinMs = parseWindow(within, 'ban.within')
  const timesMs = parseTimes(times)
  return {
    ...ANY,
    after,
    within: withinMs,
    for: timesMs,
    forgetAfter:
      forgetAfter === undefined ? Math.max(...timesMs) : parseWindow(forgetAfter, 'ban.forgetAfter'),
  }
}

function parseTimes(times: BanOptions['for']): readonly number[] {
  if (typeof times === 'number' || typeof times === 'string') return [parseWindow(times, 'ban.for')]
  if (!Array.isArray(times) || times.length < 1 || times.length > MOST_TIMES) {
    const given = Array.isArray(times) ? `an array of ${times.length}` : show(times)
    throw invalidOption(`ban.for is ${given}; it must be a duration or an array of 1 to ${MOST_TIMES}`, times)
  }
  // By index: of a hole, too, it is to be said that it is no duration.
  return Array.from(times as readonly Duration[], (time, i) => parseWindow(time, `ban.for[${i}]`))
}

/** Also what the Lua is given. */
interface BanParams extends LogParams {
  readonly after: number
  readonly within: number
  /** In milliseconds, by level. */
  readonly for: readonly number[]
  readonly forgetAfter: number
}

/** A log with content counts as a used limit of 1. So a full memory store keeps its key. */
const ANY: LogParams = { precision: 1, records: 1, windows: [0], limits: [1] }

/** Times are 0 where there is nothing that they would be the time of. */
interface Ban {
  /** When it was last written. */
  stampMs: number
  blockedUntilMs: number
  /** How many bans in a row, and until when that is remembered. */
  level: number
  levelUntilMs: number
  /** When requests were denied, oldest first: fewer than bring a ban on. */
  denialsMs: readonly number[]
}

const banKind: Kind<Ban, BanParams> = {
  tag: 'b',

  // What one denial brings on is to be told to the next.
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

  /** What was left of each time when it was last written is left of it now. */
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

/** When the ban is over, its level forgotten, and none of the denials counts. */
function expiresAt({ blockedUntilMs, levelUntilMs, denialsMs }: Ban, { within }: BanParams): number {
  const newestMs = denialsMs.at(-1)
  return Math.max(blockedUntilMs, levelUntilMs, newestMs === undefined ? 0 : newestMs + within)
}

/** The denials that count. */
function counting({ denialsMs }: Ban, { within }: BanParams, nowMs: number): readonly number[] {
  const oldest = denialsMs.findIndex((deniedMs) => nowMs - deniedMs < within)
  return oldest < 0 ? [] : denialsMs.slice(oldest)
}

function levelAt({ level, levelUntilMs }: Ban, nowMs: number): number {
  return nowMs < levelUntilMs ? level : 0
}

/** Forgets what is over: a log that holds nothing has no stamp either, as if it had never been written. */
function settle(ban: Ban, params: BanParams, nowMs: number): void {
  ban.denialsMs = counting(ban, params, nowMs)
  if (ban.blockedUntilMs <= nowMs) ban.blockedUntilMs = 0
  if (ban.levelUntilMs <= nowMs) ban.level = ban.levelUntilMs = 0
  const isEmpty = ban.blockedUntilMs === 0 && ban.level === 0 && ban.denialsMs.length === 0
  ban.stampMs = isEmpty ? 0 : nowMs
}
