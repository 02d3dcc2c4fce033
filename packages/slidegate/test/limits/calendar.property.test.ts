// tier: integration
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { Calendar } from '../../src/limits/calendar.ts'
import { localMs, nextSetting, offsetAt, ordinal } from './local-time.ts'

const HOUR_MS = 3_600_000
const YEAR_MS = 366 * 24 * HOUR_MS

/** Time zones with something unusual in their history, and all others. */
const zone = fc.oneof(
  fc.constantFrom(
    'America/Havana',
    'America/Sao_Paulo',
    'America/St_Johns',
    'Asia/Beirut',
    'Asia/Kathmandu',
    'Africa/Casablanca',
    'Africa/Monrovia',
    'Antarctica/Troll',
    'Australia/Lord_Howe',
    'Europe/Berlin',
    'Europe/Dublin',
    'Pacific/Apia',
    'Pacific/Kwajalein',
  ),
  fc.constantFrom(...Intl.supportedValuesOf('timeZone')),
)

const anyTime = fc.integer({ min: 0, max: Date.UTC(2100, 0) })

/** An instant, usually near a change of the local clock. */
const instant = fc
  .record({
    timeZone: zone,
    fromMs: anyTime,
    isNear: fc.constantFrom(true, true, false),
    offByMs: fc.oneof(
      fc.constantFrom(-HOUR_MS, -1, 0, 1, HOUR_MS / 2, HOUR_MS),
      fc.integer({ min: -30 * HOUR_MS, max: 30 * HOUR_MS }),
    ),
  })
  .map(({ timeZone, fromMs, isNear, offByMs }) => {
    const setMs = isNear ? nextSetting(timeZone, fromMs, YEAR_MS) : undefined
    return { timeZone, ms: setMs === undefined ? fromMs : Math.max(0, setMs + offByMs) }
  })

/** Uses a new calendar, without anything cached. */
const startOf = (unit: Calendar['unit'], timeZone: string, ms: number) =>
  new Calendar(unit, timeZone).startOf(ms)
const endOf = (unit: Calendar['unit'], timeZone: string, ms: number) => new Calendar(unit, timeZone).endOf(ms)

describe.each(['hour', 'day', 'week', 'month'] as const)('calendar windows by the %s', (unit) => {
  it('contain each instant once, without gaps', () =>
    fc.assert(
      fc.property(instant, ({ timeZone, ms }) => {
        const startMs = startOf(unit, timeZone, ms)
        const endMs = endOf(unit, timeZone, ms)
        expect(startMs).toBeLessThanOrEqual(ms)
        expect(endMs).toBeGreaterThan(ms)
        expect(startOf(unit, timeZone, startMs)).toBe(startMs)
        expect(endOf(unit, timeZone, startMs)).toBe(endMs)
        expect(startOf(unit, timeZone, endMs - 1)).toBe(startMs)
        expect(startOf(unit, timeZone, endMs)).toBe(endMs)
      }),
      { numRuns: 100 },
    ))

  it("don't depend on what is cached", () => {
    const askable = fc.array(fc.record({ hours: fc.nat(400), isEnd: fc.boolean() }), { maxLength: 30 })
    fc.assert(
      fc.property(instant, askable, ({ timeZone, ms }, asked) => {
        const calendar = new Calendar(unit, timeZone)
        for (const { hours, isEnd } of asked) {
          const at = ms + hours * HOUR_MS
          const askedMs = isEnd ? startOf(unit, timeZone, at) : at
          expect(calendar.edgesAround(at)).toEqual(new Calendar(unit, timeZone).edgesAround(at))
          if (isEnd) expect(calendar.endOf(askedMs)).toBe(endOf(unit, timeZone, askedMs))
          else expect(calendar.startOf(askedMs)).toBe(startOf(unit, timeZone, askedMs))
        }
      }),
      { numRuns: 20 },
    )
  })

  it('report the edges of five windows around an instant, its own in the middle', () =>
    fc.assert(
      fc.property(instant, ({ timeZone, ms }) => {
        const edges = new Calendar(unit, timeZone).edgesAround(ms)
        expect(edges.length).toBe(6)
        expect(edges[2]).toBe(startOf(unit, timeZone, ms))
        for (let i = 1; i < edges.length; i++) {
          // There are no windows before the epoch.
          if (edges[i] !== 0) expect(edges[i - 1]).toBe(startOf(unit, timeZone, edges[i]! - 1))
        }
      }),
      { numRuns: 50 },
    ))
})

describe.each(['day', 'week', 'month'] as const)('a %s', (unit) => {
  it('begins with the first local time of its date according to Intl, and ends with the next', () =>
    fc.assert(
      fc.property(instant, fc.double({ min: 0, max: 1, noNaN: true }), ({ timeZone, ms }, part) => {
        const startMs = startOf(unit, timeZone, ms)
        const endMs = endOf(unit, timeZone, ms)
        const at = (someMs: number) => ordinal(unit, timeZone, someMs)
        if (startMs > 0) expect(at(startMs)).toBeGreaterThan(at(startMs - 1))
        expect(at(endMs)).toBeGreaterThan(at(endMs - 1))
        // No other window begins in between. If the clock is set back over midnight, the previous local date returns.
        for (const insideMs of [ms, endMs - 1, startMs + Math.floor(part * (endMs - startMs - 1))]) {
          expect(at(insideMs)).toBeLessThanOrEqual(at(startMs))
        }
      }),
      { numRuns: 100 },
    ))
})

it('an hour begins at a full local hour or a clock change, and has one local hour throughout', () =>
  fc.assert(
    fc.property(instant, ({ timeZone, ms }) => {
      const startMs = startOf('hour', timeZone, ms)
      const endMs = endOf('hour', timeZone, ms)
      for (const edgeMs of [startMs, endMs]) {
        const isFull = localMs(timeZone, edgeMs) % HOUR_MS === 0
        const isSet = offsetAt(timeZone, edgeMs) !== offsetAt(timeZone, edgeMs - 1)
        expect(isFull || isSet || edgeMs === 0).toBe(true)
      }
      const hourAt = (someMs: number) => Math.floor(localMs(timeZone, someMs) / HOUR_MS)
      expect(hourAt(endMs - 1)).toBe(hourAt(startMs))
      expect(offsetAt(timeZone, endMs - 1)).toBe(offsetAt(timeZone, startMs))
    }),
    { numRuns: 150 },
  ))
