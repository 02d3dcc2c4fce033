import { expect, it } from 'vitest'
import { played } from './support/example.ts'

const LEDGER = /^user:(\w+): (\d+) reserved, (\d+) used, (\d+) refunded, (\d+) left$/gm

it('the actual tokens are charged, even if the client disconnects', async () => {
  const printed = await played('llm-gateway')
  const ledger = Array.from(printed.matchAll(LEDGER), ([, user, ...numbers]) => {
    const [reserved, used, returned, left] = numbers.map(Number)
    return { user, reserved, used, returned, left }
  })

  const ada = ledger.filter(({ user }) => user === 'ada')
  expect(ada).toMatchObject([
    { reserved: 403, used: 43, returned: 360, left: 957 },
    { reserved: 403, used: 103, returned: 300 },
    { reserved: 403, used: 103, returned: 300, left: 751 },
    { reserved: 403, used: 43, returned: 360, left: 708 },
  ])
  expect(printed.match(/^user:ada: 429, retry in \d+ s$/gm)).toHaveLength(1)

  const [bob] = ledger.filter(({ user }) => user === 'bob')
  expect(bob!.used).toBeGreaterThanOrEqual(20)
  expect(bob!.used).toBeLessThan(503)
  expect(bob).toMatchObject({ reserved: 503, returned: 503 - bob!.used!, left: 1000 - bob!.used! })

  expect(printed).toMatch(/^user:eve: 429, never$/m)
})
