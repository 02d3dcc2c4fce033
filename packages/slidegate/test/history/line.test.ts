// tier: integration
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { storesOn } from '../support/stores.ts'
import { useRedis } from '../support/use-redis.ts'
import { LINE_SCALES, lineHistoryOf, playLine } from './line-play.ts'

// Processes that wait for a key, each by its ticket, through a store and through a model of the line: places, who is
// admitted ahead of whom, how long each is told to wait, and who loses his place.

const { redis } = await useRedis()

const STORES = storesOn(redis)

describe('memory, Redis and the model agree in all that those are told who wait in line', () => {
  test.each(Object.entries(LINE_SCALES))('%s', async (_, scale) => {
    const sum = { decisions: 0, behind: 0, held: 0 }
    // Some histories have nobody behind another, or nobody held: more of them are played until enough had.
    while (sum.decisions < 1500 || ((sum.behind <= 5 || sum.held <= 50) && sum.decisions < 30_000)) {
      const property = fc.asyncProperty(lineHistoryOf(scale), async (history) => {
        const { decisions, behind, held } = await playLine(history, STORES)
        sum.decisions += decisions
        sum.behind += behind
        sum.held += held
      })
      await fc.assert(property, { numRuns: 5 })
    }
    expect(sum.behind).toBeGreaterThan(5)
    expect(sum.held).toBeGreaterThan(50)
  })
})
