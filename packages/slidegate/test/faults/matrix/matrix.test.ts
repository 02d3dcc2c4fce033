// tier: system
import { afterAll, expect, it } from 'vitest'
import { cellsInShort, cellsOf, policiesOf, SELECTION } from './cells.ts'
import { stopShared } from './faults.ts'
import { type Result, resultOf } from './result.ts'
import { writeResults } from './results.ts'
import { runFault } from './run-fault.ts'
import { complaintsOf, LOOSE, STRICT, TIMELESS } from './verdict.ts'

const cells = SELECTION === undefined ? cellsInShort() : cellsOf(SELECTION)
const policies = policiesOf(SELECTION ?? {})
const bounds = SELECTION === undefined ? LOOSE : STRICT
const results: Result[] = []

afterAll(async () => {
  await stopShared()
  // Doesn't write results of a selection of policies: they would be mistaken for results of all policies.
  if (SELECTION !== undefined && SELECTION.policies === undefined) await writeResults(results)
})

it.each(cells)('$fault.name with $client.name keeps all guarantees', async ({ fault, client }) => {
  let report = await runFault(fault, client, policies)
  // A busy machine can miss a time bound by chance, so one more run decides. The other guarantees hold in every run.
  const isOnlyLate = complaintsOf(report, bounds).length > 0 && complaintsOf(report, TIMELESS).length === 0
  if (SELECTION === undefined && isOnlyLate) {
    report = await runFault(fault, client, policies)
  }
  const complaints = complaintsOf(report, bounds)
  const result = resultOf(report, complaints)
  results.push(result)
  if (SELECTION !== undefined) console.log(JSON.stringify(result))
  expect(complaints).toEqual([])
})
