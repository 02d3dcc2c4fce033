import { expect, it } from 'vitest'
import { fixedWindow, slidingWindow } from '../../src/index.ts'
import { limitSet } from '../../src/limits/limit-set.ts'
import { KeyTable } from '../../src/stores/memory/key-table.ts'

it("a key's logs are deleted when it no longer has their limits", () => {
  const table = new KeyTable(10, 0)
  // This limit keeps the key alive.
  const yearly = slidingWindow({ limit: 100, window: '366d' })
  const setOf = (i: number) => limitSet('api', [yearly, fixedWindow({ limit: 10, window: 1000 + i })])
  let nowMs = 2_000_000_000_000
  let highest = 0
  for (let i = 0; i < 1000; i++) {
    nowMs += 10_000
    table.sweep(nowMs)
    const group = table.groupOf(setOf(i))
    let slot = table.find(group, 'k')
    if (slot === 0) {
      table.add(
        group,
        'k',
        group.logs.map((logs) => logs.create()),
        nowMs,
      )
      slot = table.find(group, 'k')
    }
    table.useSlot(slot, group)
    group.set.logs.forEach(({ kind, params }, log) => {
      const state = group.logs[log]!.at(table.logOf(slot, log))
      kind.commit(state, params, nowMs, { units: 1, leaseMs: 0, entry: '' })
    })
    // The numbers of deleted logs are reused.
    highest = Math.max(highest, table.logOf(slot, 1))
  }
  expect(table.size).toBe(1)
  expect(highest).toBeLessThan(5)
})
