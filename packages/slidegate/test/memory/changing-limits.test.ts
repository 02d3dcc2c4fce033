import { expect, it } from 'vitest'
import { fixedWindow, slidingWindow } from '../../src/index.ts'
import { limitSet } from '../../src/limits/limit-set.ts'
import { KeyTable } from '../../src/stores/memory/key-table.ts'

it('logs of limits that a key is not held to any more are forgotten with what they hold', () => {
  const table = new KeyTable(10, 0)
  // By this one the key lives on.
  const yearly = slidingWindow({ limit: 100, window: '366d' })
  const setOf = (i: number) => limitSet('api', [yearly, fixedWindow({ limit: 10, window: 1000 + i })])
  let nowMs = 2_000_000_000_000
  let highest = 0
  for (let i = 0; i < 1000; i++) {
    nowMs += 10_000
    table.sweep(nowMs)
    const group = table.groupOf(setOf(i))
    let slot = table.use(group, 'k')
    if (slot === 0) {
      table.add(
        group,
        'k',
        group.logs.map((logs) => logs.create()),
        nowMs,
      )
      slot = table.use(group, 'k')
    }
    group.set.logs.forEach(({ kind, params }, log) => {
      const state = group.logs[log]!.at(table.logOf(slot, log))
      kind.commit(state, params, nowMs, { units: 1, leaseMs: 0, entry: '' })
    })
    // Numbers of logs that were forgotten are given again.
    highest = Math.max(highest, table.logOf(slot, 1))
  }
  expect(table.size).toBe(1)
  expect(highest).toBeLessThan(5)
})
