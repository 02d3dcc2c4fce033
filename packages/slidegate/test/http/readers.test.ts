// tier: system
import { parseRateLimit } from 'ratelimit-header-parser'
import { parseDictionary, parseItem, parseList } from 'structured-headers'
import { expect, it, onTestFinished } from 'vitest'
import { rateLimit } from '../../src/adapters/node.ts'
import type { HeadersOption } from '../../src/http/index.ts'
import { memoryStore, slidingWindow } from '../../src/index.ts'
import { listen } from '../adapters/listen.ts'

// Other libraries read the headers from the wire: `ratelimit-header-parser`, which supports formats up to draft-7, and
// `structured-headers`, which is strict about RFC 9651.

const NOW_MS = 1_700_000_000_000

/** Returns two responses: the first request is admitted, the second is denied 10 s later. */
async function answers(headers: HeadersOption): Promise<[Response, Response]> {
  const clock = { nowMs: NOW_MS }
  const limit = rateLimit({
    limits: [
      slidingWindow({ limit: 1, window: '1m', name: 'A.z-0_9' }),
      slidingWindow({ limit: 2 ** 40, window: '366d', name: 'long' }),
      slidingWindow({ limit: 7, window: 10, name: 'short' }),
    ],
    store: memoryStore({ clock: () => clock.nowMs }),
    headers,
  })
  const server = await listen((req, res) => limit(req, res, () => res.end()))
  onTestFinished(() => server.close())
  const admitted = await fetch(server.url)
  clock.nowMs += 10_000
  return [admitted, await fetch(server.url)]
}

it('draft-11 headers are lists of strings with integers', async () => {
  const both = await answers(['draft-11', 'legacy'])
  const read = (name: string) =>
    both.map((response) =>
      parseList(response.headers.get(name)!).map(([item, parameters]) => [
        item,
        Object.fromEntries(parameters),
      ]),
    )
  const policies = [
    ['A.z-0_9', { q: 1, w: 60 }],
    ['long', { q: 2 ** 40, w: 366 * 86_400 }],
    ['short', { q: 7 }],
  ]
  expect(read('RateLimit-Policy')).toEqual([policies, policies])
  expect(read('RateLimit')).toEqual([
    [
      ['A.z-0_9', { r: 0, t: 60 }],
      ['long', { r: 2 ** 40 - 1, t: expect.any(Number) }],
      ['short', { r: 6, t: 1 }],
    ],
    [
      ['A.z-0_9', { r: 0, t: 50 }],
      ['long', { r: 2 ** 40 - 1 }],
      ['short', { r: 7 }],
    ],
  ])
})

it('draft-7 headers are a dictionary and a list of integers', async () => {
  const [admitted, denied] = await answers('draft-7')
  for (const [response, reset] of [
    [admitted, 60],
    [denied, 50],
  ] as const) {
    const state = parseDictionary(response.headers.get('RateLimit')!)
    expect([...state].map(([name, [value]]) => [name, value])).toEqual([
      ['limit', 1],
      ['remaining', 0],
      ['reset', reset],
    ])
    const [[quota, parameters]] = parseList(response.headers.get('RateLimit-Policy')!) as [
      [number, Map<string, number>],
    ]
    expect([quota, parameters.get('w')]).toEqual([1, 60])
  }
})

it.each<HeadersOption>(['draft-7', 'draft-6', 'legacy', ['draft-7', 'legacy'], ['draft-6', 'legacy']])(
  'ratelimit-header-parser reads the format %j',
  async (headers) => {
    const [admitted, denied] = await answers(headers)
    const before = Date.now()
    for (const [response, seconds] of [
      [admitted, 60],
      [denied, 50],
    ] as const) {
      const { limit, remaining, used, reset } = parseRateLimit(response)!
      expect({ limit, remaining, used }).toEqual({ limit: 1, remaining: 0, used: 1 })
      // The parser adds seconds to its own clock. A reset that is a time is by the store's clock.
      if (headers === 'legacy') expect(reset).toEqual(new Date(NOW_MS + 60_000))
      else expect(Math.abs(reset!.getTime() - before - seconds * 1000)).toBeLessThan(10_000)
    }
  },
)

it('ratelimit-header-parser parses draft-11 as draft-7 and finds no numbers, even next to legacy', async () => {
  for (const headers of ['draft-11', ['draft-11', 'legacy']] as const) {
    const [admitted] = await answers(headers)
    expect(parseRateLimit(admitted)).toMatchObject({ limit: Number.NaN, remaining: Number.NaN })
  }
})

it('Retry-After is an integer, and the same in all formats', async () => {
  for (const headers of ['draft-11', 'draft-7', 'draft-6', 'legacy', false] as const) {
    const [admitted, denied] = await answers(headers)
    expect(admitted.headers.has('Retry-After')).toBe(false)
    expect(parseItem(denied.headers.get('Retry-After')!)[0]).toBe(50)
  }
})
