// tier: system
import { slidingWindow } from 'slidegate'
import { expect, it } from 'vitest'
import { memoryDecider } from '../../src/replay/decider.ts'
import { htmlReport } from '../../src/replay/html-report.ts'
import { ReorderBuffer } from '../../src/replay/reorder-buffer.ts'
import { reportOf } from '../../src/replay/report.ts'
import { Skipped } from '../../src/replay/skipped.ts'
import { Tally } from '../../src/replay/tally.ts'

it('tells of more callers than a call has arguments', () => {
  const limits = [slidingWindow({ limit: 1, window: '1m' })]
  const run = { decider: memoryDecider(limits), tally: new Tally(limits, true) }
  const replayed = { requests: 1, skipped: new Skipped(), fromMs: 1, toMs: 1 }
  const buffer = new ReorderBuffer({ boundMs: 0, capacity: 1 })
  const callers = 150_000
  const topDenied = Array.from({ length: callers }, (_, i) => ({ key: `caller-${i}`, denied: callers - i }))
  const report = { ...reportOf(replayed, buffer, 0, run), topDenied }
  const page = htmlReport({ report, source: 'a log', key: 'ip', run, nowMs: 0 })
  expect(page).toContain('caller-149999')
})
