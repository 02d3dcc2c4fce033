// tier: system
import { isIPv4 as isIPv4OfNode } from 'node:net'
import fc from 'fast-check'
import forwardedParse from 'forwarded-parse'
import { describe, expect, it } from 'vitest'
import { isIPv4 } from '../../src/http/addresses.ts'
import { forwardedFor } from '../../src/http/client-address.ts'

const RUNS = { numRuns: 20_000 }

describe("isIPv4 matches Node's isIPv4", () => {
  const part = fc.oneof(
    fc.nat(300).map(String),
    fc.nat(300).map((number) => `0${number}`),
    fc.constantFrom('', '00', '1e1', '0x1', '-1', '+1', ' 1', '1\n', '256', '1000', '\u0661'),
  )
  const dotted = fc.array(part, { minLength: 3, maxLength: 5 }).map((parts) => parts.join('.'))

  it('for addresses', () => {
    fc.assert(
      fc.property(fc.ipV4(), (text) => {
        expect(isIPv4(text)).toBe(true)
        expect(isIPv4OfNode(text)).toBe(true)
      }),
      RUNS,
    )
  })

  it('for near misses and any text', () => {
    const text = fc.oneof(
      dotted,
      fc.ipV4Extended(),
      fc.ipV6(),
      fc.string(),
      fc.ipV4().map((v4) => `${v4}\n`),
    )
    fc.assert(
      fc.property(text, (given) => {
        expect(isIPv4(given)).toBe(isIPv4OfNode(given))
      }),
      RUNS,
    )
  })

  it('for every number in each part', () => {
    for (let i = 0; i < 1000; i++) {
      for (const text of [`${i}.1.2.3`, `1.${i}.2.3`, `1.2.${i}.3`, `1.2.3.${i}`]) {
        expect(isIPv4(text)).toBe(isIPv4OfNode(text))
      }
    }
  })
})

describe('forwardedFor matches forwarded-parse', () => {
  function expected(header: string): string[] | undefined {
    try {
      return forwardedParse(header).map((element) => element.for ?? '')
    } catch {
      return undefined
    }
  }

  const token = fc.string({ unit: fc.constantFrom(..."aZ09!#$%&'*+-.^_`|~"), minLength: 1, maxLength: 4 })
  const quoted = fc
    .string({ unit: fc.constantFrom(...'a1[]:;,= \t\\"\u0080\u00ff/()', '\\"', '\\\\', '\\a'), maxLength: 8 })
    .map((text) => `"${text}"`)
  const space = fc.constantFrom('', '', '', '', ' ', '\t', '  ')
  const parameter = fc
    .tuple(fc.oneof(fc.constantFrom('for', 'For', 'FOR', 'by', 'proto'), token), fc.oneof(token, quoted))
    .map(([name, value]) => `${name}=${value}`)
  const header = fc
    .array(fc.tuple(parameter, space, fc.constantFrom(',', ';'), space), { minLength: 1, maxLength: 5 })
    .map((parts) => parts.map((part) => part.join('')).join(''))
    .chain((text) => fc.constantFrom(text.trimEnd().slice(0, -1), text, text.slice(0, -1)))

  it('for valid headers and near misses', () => {
    let read = 0
    fc.assert(
      fc.property(header, (given) => {
        const elements = forwardedFor(given)
        if (elements !== undefined) read++
        expect(elements).toEqual(expected(given))
      }),
      RUNS,
    )
    expect(read).toBeGreaterThan(RUNS.numRuns / 10)
  })

  it('for headers with any character inserted or removed', () => {
    const anywhere = fc.tuple(
      header,
      fc.nat(),
      fc.nat(2),
      fc.oneof(fc.constantFrom(...'",;= \t\\\n\x7f'), fc.string({ maxLength: 2 })),
    )
    fc.assert(
      fc.property(anywhere, ([text, at, removed, put]) => {
        const place = at % (text.length + 1)
        const given = text.slice(0, place) + put + text.slice(place + removed)
        expect(forwardedFor(given)).toEqual(expected(given))
      }),
      RUNS,
    )
  })

  it.each([
    '',
    ' ',
    'for',
    'for=',
    'for=,',
    'for=a ',
    'for=a,',
    ' for=a',
    'for=a; ',
    'for="',
    'for=""',
    'for="\\',
    '=a',
    'for=a,,for=b',
    'for="a"b',
    'for=a"b"',
    'for="a" ;by=c , for=d',
    'for=a;for=b',
    '__proto__=a',
    'constructor=a',
  ])('%j', (given) => {
    expect(forwardedFor(given)).toEqual(expected(given))
  })
})
