// tier: system
import { slidingWindow } from 'slidegate'
import { expect, it } from 'vitest'
import { Results } from '../src/counts/results.ts'
import { memoryDecider } from '../src/decider.ts'
import { Skipped } from '../src/log/parse-line.ts'
import { ReorderBuffer } from '../src/log/reorder-buffer.ts'
import { htmlReport } from '../src/report/html-report.ts'
import { reportOf } from '../src/report/report.ts'

it('the HTML report lists 150,000 callers', () => {
  const limits = [slidingWindow({ limit: 1, window: '1m' })]
  const run = { decider: memoryDecider(limits), results: new Results(limits, true) }
  const replayed = { requests: 1, skipped: new Skipped(), fromMs: 1, toMs: 1 }
  const buffer = new ReorderBuffer({ boundMs: 0, capacity: 1 })
  const callers = 150_000
  const topDenied = Array.from({ length: callers }, (_, i) => ({ key: `caller-${i}`, denied: callers - i }))
  const report = { ...reportOf(replayed, buffer, 0, [], run), topDenied }
  const page = htmlReport({ version: '0.0.0', report, source: 'a log', key: 'ip', run, nowMs: 0 })
  expect(page).toContain('caller-149999')
})
