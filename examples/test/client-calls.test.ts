import { expect, it } from 'vitest'
import { played } from './support/example.ts'

it("counts each client's calls in the last ten seconds, in a stream that other programs read", async () => {
  const [, ...lines] = (await played('client-calls')).trim().split('\n')
  expect(lines.map((line) => line.split(/ {2,}/))).toEqual([
    ['after', 'ada', 'bob', 'eve'],
    ['4 s', '8', '2', '0'],
    ['8 s', '16', '4', '30'],
    ['12 s', '20', '5', '30'],
    ['16 s', '20', '5', '0'],
    ['20 s', '20', '5', '0'],
    ...[2, 4, 6, 8, 10, 12, 14, 16, 18, 20].map((second) => [
      expect.stringMatching(`: ${second}000 ms, 1 call`),
    ]),
  ])
})
