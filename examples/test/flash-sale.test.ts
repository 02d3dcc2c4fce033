import { expect, it } from 'vitest'
import { played } from './support/example.ts'

it('a fixed window sells twice its limit around the edge, a sliding window exactly its limit', async () => {
  const [, ...lines] = (await played('flash-sale')).trim().split('\n')
  expect(lines.map((line) => line.split(/ {2,}/))).toEqual([
    ['', 'fixed window', 'sliding window'],
    ['from -1.0 s on', '50', '50'],
    ['from -0.5 s on', '0', '0'],
    ['from +0.0 s on', '50', '0'],
    ['from +0.5 s on', '0', '0'],
    ['fullest 3 s', '100 of 50 = 200%', '50 of 50 = 100%'],
  ])
})
