import { Temporal } from 'temporal-polyfill'
import { describe, expect, it, vi } from 'vitest'
import { Calendar } from '../../src/limits/calendar.ts'

/** Returns the window of an instant, with its edges in local time. */
function window(unit: Calendar['unit'], timeZone: string, at: string): string {
  const calendar = new Calendar(unit, timeZone)
  const ms = Date.parse(at)
  return [calendar.startOf(ms), calendar.endOf(ms)].map((edge) => local(edge, timeZone)).join(' ')
}

function local(ms: number, timeZone: string): string {
  const zoned = Temporal.Instant.fromEpochMilliseconds(ms).toZonedDateTimeISO(timeZone)
  return zoned.toString({ timeZoneName: 'never', smallestUnit: 'minute' })
}

describe('a day', () => {
  it.each([
    ['UTC', '2026-11-22T01:30Z', '2026-11-22T00:00+00:00 2026-11-23T00:00+00:00'],
    ['Asia/Kathmandu', '2026-11-22T18:14Z', '2026-11-22T00:00+05:45 2026-11-23T00:00+05:45'],
    ['Asia/Kathmandu', '2026-11-22T18:15Z', '2026-11-23T00:00+05:45 2026-11-24T00:00+05:45'],
    // Midnight doesn't exist.
    ['America/Sao_Paulo', '2018-11-04T12:00-02:00', '2018-11-04T01:00-02:00 2018-11-05T00:00-02:00'],
    ['America/Sao_Paulo', '2018-11-03T23:59-03:00', '2018-11-03T00:00-03:00 2018-11-04T01:00-02:00'],
    ['Asia/Beirut', '2022-03-27T12:00+03:00', '2022-03-27T01:00+03:00 2022-03-28T00:00+03:00'],
    // Midnight occurs twice: the first one counts.
    ['America/Havana', '2026-11-01T12:00-05:00', '2026-11-01T00:00-04:00 2026-11-02T00:00-05:00'],
    ['America/Havana', '2026-11-01T00:30-04:00', '2026-11-01T00:00-04:00 2026-11-02T00:00-05:00'],
    ['America/Havana', '2026-11-01T00:30-05:00', '2026-11-01T00:00-04:00 2026-11-02T00:00-05:00'],
    // The last hour of the day occurs twice: both belong to that day.
    ['America/Sao_Paulo', '2018-02-17T23:30-03:00', '2018-02-17T00:00-02:00 2018-02-18T00:00-03:00'],
    // A minute after midnight, the clock is set back over it: the day continues.
    ['America/St_Johns', '2006-10-28T23:30-03:30', '2006-10-29T00:00-02:30 2006-10-30T00:00-03:30'],
    ['America/St_Johns', '2006-10-28T23:59-02:30', '2006-10-28T00:00-02:30 2006-10-29T00:00-02:30'],
    // The zone moved to the other side of the date line and skipped the 30th.
    ['Pacific/Apia', '2011-12-29T23:59-10:00', '2011-12-29T00:00-10:00 2011-12-31T00:00+14:00'],
    ['Pacific/Apia', '2011-12-31T00:00+14:00', '2011-12-31T00:00+14:00 2012-01-01T00:00+14:00'],
  ])('in %s at %s', (timeZone, at, expected) => {
    expect(window('day', timeZone, at)).toBe(expected)
  })
})

describe('an hour', () => {
  it.each([
    ['Asia/Kathmandu', '2026-11-22T12:05+05:45', '2026-11-22T12:00+05:45 2026-11-22T13:00+05:45'],
    ['Europe/Berlin', '2026-03-29T01:30+01:00', '2026-03-29T01:00+01:00 2026-03-29T03:00+02:00'],
    ['Europe/Berlin', '2026-10-25T02:30+02:00', '2026-10-25T02:00+02:00 2026-10-25T02:00+01:00'],
    ['Europe/Berlin', '2026-10-25T02:30+01:00', '2026-10-25T02:00+01:00 2026-10-25T03:00+01:00'],
    ['Australia/Lord_Howe', '2026-04-05T01:45+11:00', '2026-04-05T01:00+11:00 2026-04-05T01:30+10:30'],
    ['Australia/Lord_Howe', '2026-04-05T01:30+10:30', '2026-04-05T01:30+10:30 2026-04-05T02:00+10:30'],
    ['Australia/Lord_Howe', '2026-04-05T01:45+10:30', '2026-04-05T01:30+10:30 2026-04-05T02:00+10:30'],
    // One minute of the day, then all but one minute of the previous hour again.
    ['America/St_Johns', '2006-10-29T00:00-02:30', '2006-10-29T00:00-02:30 2006-10-28T23:01-03:30'],
    ['America/St_Johns', '2006-10-28T23:30-03:30', '2006-10-28T23:01-03:30 2006-10-29T00:00-03:30'],
    ['Australia/Lord_Howe', '2026-10-04T02:45+11:00', '2026-10-04T02:30+11:00 2026-10-04T03:00+11:00'],
  ])('in %s at %s', (timeZone, at, expected) => {
    expect(window('hour', timeZone, at)).toBe(expected)
  })
})

describe('weeks and months', () => {
  it.each([
    ['week', 'UTC', '2027-01-03T23:59Z', '2026-12-28T00:00+00:00 2027-01-04T00:00+00:00'],
    ['week', 'Europe/Berlin', '2026-10-25T23:59+01:00', '2026-10-19T00:00+02:00 2026-10-26T00:00+01:00'],
    ['week', 'Pacific/Apia', '2011-12-31T12:00+14:00', '2011-12-26T00:00-10:00 2012-01-02T00:00+14:00'],
    ['month', 'UTC', '2028-02-29T12:00Z', '2028-02-01T00:00+00:00 2028-03-01T00:00+00:00'],
    ['month', 'America/New_York', '2026-12-01T04:59Z', '2026-11-01T00:00-04:00 2026-12-01T00:00-05:00'],
  ] as const)('the %s in %s at %s', (unit, timeZone, at, expected) => {
    expect(window(unit, timeZone, at)).toBe(expected)
  })
})

it("the end of a window doesn't depend on earlier calls", () => {
  const calendar = new Calendar('day', 'UTC')
  expect(calendar.endOf(Date.parse('2026-11-22T12:00Z'))).toBe(Date.parse('2026-11-23T00:00Z'))
  calendar.startOf(Date.parse('2026-11-22T12:00Z'))
  expect(calendar.endOf(Date.parse('2026-11-24T12:00Z'))).toBe(Date.parse('2026-11-25T00:00Z'))
  expect(calendar.startOf(Date.parse('2026-11-23T00:00Z'))).toBe(Date.parse('2026-11-23T00:00Z'))
})

it('the windows around an instant are its own, two before it and two after it', () => {
  const calendar = new Calendar('day', 'UTC')
  const edgesAround = (at: string) =>
    calendar.edgesAround(Date.parse(at)).map((ms) => new Date(ms).toISOString().slice(0, 10))
  for (const at of ['2026-11-22T00:00Z', '2026-11-22T23:59Z']) {
    expect(edgesAround(at)).toEqual([
      ...['2026-11-20', '2026-11-21', '2026-11-22'],
      ...['2026-11-23', '2026-11-24', '2026-11-25'],
    ])
  }
  expect(edgesAround('2026-11-23T00:00Z')[2]).toBe('2026-11-23')
})

it('no window begins before the epoch', () => {
  const calendar = new Calendar('month', 'America/New_York')
  expect([calendar.startOf(0), calendar.endOf(0)]).toEqual([0, Date.parse('1970-01-01T00:00-05:00')])
  expect(calendar.edgesAround(0).slice(0, 4)).toEqual([0, 0, 0, Date.parse('1970-01-01T00:00-05:00')])
})

it('the latest possible time has a window', () => {
  expect(window('month', 'Europe/Berlin', new Date(2 ** 47).toISOString())).toBe(
    '6429-10-01T00:00+02:00 6429-11-01T00:00+01:00',
  )
})

it('the name of a time zone is case-insensitive', () => {
  expect(new Calendar('day', 'europe/berlin').timeZone).toBe('Europe/Berlin')
  expect(new Calendar('day', 'utc').timeZone).toBe('UTC')
})

it('a calendar computes each window once', () => {
  const asked = vi.spyOn(Temporal.Instant, 'fromEpochMilliseconds')
  try {
    const calendar = new Calendar('hour', 'Europe/Berlin')
    const startMs = Date.parse('2026-11-22T00:00Z')
    const endMs = startMs + 48 * 3_600_000
    const askAll = () => {
      for (let ms = startMs; ms < endMs; ms += 60_000) {
        calendar.startOf(ms)
        calendar.endOf(ms)
        // This call is like one for a log that was last charged a day ago.
        calendar.endOf(Math.max(startMs, calendar.startOf(ms) - 86_400_000))
        calendar.edgesAround(ms)
      }
    }
    askAll()
    // A few calls for the zone's name, and a few for the edges before and after each window.
    expect(asked.mock.calls.length).toBeLessThan(2 + 48 * 6)
  } finally {
    asked.mockRestore()
  }
})
