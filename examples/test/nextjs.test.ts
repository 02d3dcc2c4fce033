import { expect, it } from 'vitest'
import { served } from './support/example.ts'

it('a route has a limit, and the proxy limits the whole app', async () => {
  const url = await served('nextjs')
  const ask = async (address: string) => {
    const response = await fetch(`${url}/api/quotes`, { headers: { 'X-Forwarded-For': address } })
    const body = await response.json()
    const left = response.headers.get('RateLimit')?.replace(/;t=\d+/, '')
    const hasRetryAfter = response.headers.get('Retry-After') !== null
    return [response.status, left, body['violated-policies']?.join(), hasRetryAfter]
  }

  // Compiling can take a minute.
  expect((await ask('192.0.2.1'))[0]).toBe(200)
  for (let left = 4; left >= 0; left--) {
    expect(await ask('203.0.113.7')).toEqual([200, `"5-per-1m";r=${left}`, undefined, false])
  }
  for (let n = 6; n <= 20; n++) {
    expect(await ask('203.0.113.7')).toEqual([429, '"5-per-1m";r=0', '5-per-1m', true])
  }
  expect(await ask('203.0.113.7')).toEqual([429, undefined, '20-per-1m', true])
  expect(await ask('198.51.100.20')).toEqual([200, '"5-per-1m";r=4', undefined, false])
})
