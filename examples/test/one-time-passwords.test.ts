import { expect, it } from 'vitest'
import { played } from './support/example.ts'

it('a phone gets a code every 30 seconds, and a persistent address is banned longer each time', async () => {
  const lines = (await played('one-time-passwords')).split('\n')
  /** Times and answers. */
  const answersTo = (address: string) =>
    lines.flatMap((line) => {
      const [at, unit, from] = line.trim().split(/\s+/)
      return from === address && unit === 's' ? [`${at}: ${/(?<=\d{4} +)\d{3}\b.*/.exec(line)?.[0]}`] : []
    })

  expect(answersTo('203.0.113.7')).toEqual(['0: 200', '0: 429, retry in 30 s (phone.1-per-30s)', '30: 200'])
  const over = (retryAfter: number) => `429, retry in ${retryAfter} s (address.3-per-1m)`
  expect(answersTo('192.0.2.66')).toEqual([
    ...['30: 200', '30: 200', '30: 200', `30: ${over(60)}`, `30: ${over(60)}`, `30: ${over(600)}`],
    '90: 429, retry in 540 s (address.ban)',
    ...['630: 200', '630: 200', '630: 200', `630: ${over(60)}`, `630: ${over(60)}`, `630: ${over(3600)}`],
    ...['4230: 200', '4230: 200', '4230: 200'],
    ...[`4230: ${over(60)}`, `4230: ${over(60)}`, `4230: ${over(86_400)}`],
    '90630: 200',
  ])
  expect(answersTo('198.51.100.20')).toEqual(['4230: 200'])
})
