import type { Kind, LogParams, Ticket } from './limit.ts'
import type { ExtraLog } from './limit-set.ts'
import { ObjectLogs } from './object-logs.ts'

/** Processes that can wait in line for one key. Any more wait without a place of their own. */
const MOST_TICKETS = 256

/** Units that one waits for at most, and all together. */
const MOST_UNITS: number = 2 ** 40

/** A ticket as it stands in the line. */
interface Standing extends Ticket {
  readonly units: number
  /** From when on it is not expected to ask again. */
  readonly untilMs: number
}

/** In no order: who comes before whom is seen from the tickets. */
interface Line {
  /** When it was last written; 0 where nobody waits. */
  stampMs: number
  tickets: readonly Standing[]
}

const PARAMS: LogParams = { precision: 1, records: MOST_TICKETS, windows: [], limits: [] }

const lineKind: Kind<Line> = {
  tag: 'q',

  logName: () => 'q',

  params: () => PARAMS,

  createLogs: () =>
    new ObjectLogs<Line>(
      () => ({ stampMs: 0, tickets: [] }),
      (line) => ({ ...line }),
      ({ tickets }) => 64 + 128 * tickets.length,
    ),

  newest: (line) => line.stampMs,

  /** Forgets them all: they ask again, and each says since when it waits. */
  restamp(line) {
    line.tickets = []
    line.stampMs = 0
  },

  check() {},

  commit() {},

  retryAfter: () => 0,

  resetAfter: () => 0,

  refund: () => 0,

  expiresAt: ({ tickets }) => tickets.reduce((latestMs, { untilMs }) => Math.max(latestMs, untilMs), 0),

  line: {
    ahead(line, _params, nowMs, { id, sinceMs }, room, soonMs) {
      // Who comes now stands where it will stand when it asks again: told another time, the others would wait for it.
      const own = { id, sinceMs: sinceMs === 0 ? nowMs : Math.min(sinceMs, nowMs) }
      const before = othersIn(line, nowMs, id).filter((each) => isBefore(each, own))
      const awaited = before.filter((each) => each.untilMs <= soonMs || each.units > room)
      return { units: unitsOf(before), awaited: unitsOf(awaited) }
    },

    put(line, _params, nowMs, { id, sinceMs }, units, untilMs) {
      const others = othersIn(line, nowMs, id)
      const isTaken = untilMs > nowMs && others.length < MOST_TICKETS
      const ticket = { id, sinceMs, units: Math.min(units, MOST_UNITS), untilMs }
      write(line, nowMs, isTaken ? [...others, ticket] : others)
    },

    remove(line, _params, nowMs, id) {
      write(line, nowMs, othersIn(line, nowMs, id))
    },
  },
}

/** The log of a part's line. */
export const lineLog: ExtraLog = {
  name: 'q',
  role: 'line',
  kind: lineKind,
  params: PARAMS,
}

/** Whether another is to be admitted before this one. */
function isBefore(other: Ticket, { id, sinceMs }: Ticket): boolean {
  return other.sinceMs < sinceMs || (other.sinceMs === sinceMs && other.id < id)
}

function unitsOf(tickets: readonly Standing[]): number {
  return Math.min(
    tickets.reduce((sum, { units }) => sum + units, 0),
    MOST_UNITS,
  )
}

/** Those that still wait, but for this one. */
function othersIn({ tickets }: Line, nowMs: number, id: string): readonly Standing[] {
  return tickets.filter((each) => each.untilMs > nowMs && each.id !== id)
}

function write(line: Line, nowMs: number, tickets: readonly Standing[]): void {
  line.tickets = tickets
  // Where the clock was set back, that is still to be seen by who asks next.
  line.stampMs = tickets.length === 0 ? 0 : Math.max(line.stampMs, nowMs)
}
