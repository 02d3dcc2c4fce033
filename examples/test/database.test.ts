import { expect, it } from 'vitest'
import { played } from './support/example.ts'

it('a fixed window lets twice its limit reach a database, a sliding window never more than its limit', async () => {
  const [head = '', ...lines] = (await played('database')).trimEnd().split('\n')
  expect(head.trim().split(/ {2,}/)).toEqual(['no limit', 'fixed window', 'sliding window'])
  const rows: Record<string, string[]> = {}
  for (const line of lines) {
    const [what = '', ...cells] = line.split(/ {2,}/)
    rows[what] = cells
  }
  const numbers = (what: string) => rows[what]!.map((cell) => Number.parseFloat(cell))

  expect(rows['reached the database']).toEqual(['500', '100', '50'])
  expect(rows['in the fullest 2 s']).toEqual(['500', '100', '50'])
  expect(rows.denied).toEqual(['0', '400', '450'])
  const [answered, failed] = [numbers('answered'), numbers('failed')]
  expect(answered.map((count, way) => count + failed[way]!)).toEqual([500, 100, 50])
  // The database needs 10 s for 500 requests that arrive within 2 s and wait for up to 1.2 s.
  expect(failed[0]).toBeGreaterThan(0)
  expect(Math.min(...answered)).toBeGreaterThan(0)
  expect(Math.min(...numbers('CPU of the database'))).toBeGreaterThan(0)
})
