import { expect, it } from 'vitest'
import { played } from './support/example.ts'

it('all requests of three processes with one budget are served, without a violation', async () => {
  const printed = await played('third-party')
  expect(printed).toMatch(/^Without a budget: 50 served, 49 violations/m)
  expect(printed).toMatch(/^With a shared budget: 99 served, 0 violations/m)
})
