import { writeFile } from 'node:fs/promises'
import { loadavg } from 'node:os'
import { describeMachine } from './machine.ts'
import { type Options, parseOptions } from './options.ts'
import { headOf, tableOf } from './report/console.ts'
import { readResults, writeReport } from './report/write.ts'
import { inJson, type Results, type Run, resultOf, type ScenarioResult, summaryOf } from './results.ts'
import type { Scenario } from './scenario.ts'
import { allocations } from './scenarios/allocations.ts'
import { bound } from './scenarios/bound.ts'
import { bytes } from './scenarios/bytes.ts'
import { cluster } from './scenarios/cluster.ts'
import { field } from './scenarios/field.ts'
import { flood } from './scenarios/flood.ts'
import { growth } from './scenarios/growth.ts'
import { http } from './scenarios/http.ts'
import { instructions } from './scenarios/instructions.ts'
import { kinds } from './scenarios/kinds.ts'
import { local } from './scenarios/local.ts'
import { memory } from './scenarios/memory.ts'
import { peers } from './scenarios/peers.ts'
import { processes } from './scenarios/processes.ts'
import { redisCpu } from './scenarios/redis-cpu.ts'
import { service } from './scenarios/service.ts'
import { telemetry } from './scenarios/telemetry.ts'
import { oneAtATime, throughput } from './scenarios/throughput.ts'
import { truth } from './scenarios/truth.ts'

const SCENARIOS: readonly Scenario[] = [
  throughput,
  oneAtATime,
  cluster,
  peers,
  redisCpu,
  instructions,
  kinds,
  bytes,
  bound,
  truth,
  growth,
  processes,
  local,
  memory,
  allocations,
  http,
  service,
  telemetry,
  field,
  flood,
]

/** A bench that takes longer than this hangs. */
const MOST_MINUTES = { short: 20, full: 90 }

const { effort, scenarios, jsonFile, isReported, fromFile } = optionsOrExit()
// Exits on these signals, which also stops the servers.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1))
setTimeout(() => {
  console.error(`The bench did not finish in ${MOST_MINUTES[effort.mode]} minutes. Stopping.`)
  process.exit(1)
}, MOST_MINUTES[effort.mode] * 60_000).unref()

const results = fromFile === undefined ? await measureAll() : await readResults(fromFile)
console.log(summaryOf(results))
if (jsonFile !== undefined) await writeFile(jsonFile, inJson(results))
if (isReported) {
  const order = SCENARIOS.map(({ name }) => name)
  for (const remark of await writeReport(results, order)) console.log(remark)
}
process.exit(results.scenarios.some(({ error }) => error !== undefined) ? 1 : 0)

function optionsOrExit(): Options {
  try {
    return parseOptions(process.argv.slice(2), SCENARIOS)
  } catch (error) {
    console.error(error instanceof Error ? error.message : error)
    process.exit(2)
  }
}

async function measureAll(): Promise<Results> {
  const machine = await describeMachine()
  const { mode, isPinned } = effort
  const run: Run = { machine, startedAt: new Date().toISOString(), mode, isPinned, load: loadavg()[0]! }
  console.log(`${headOf(run)}\n`)
  const measured: ScenarioResult[] = []
  for (const scenario of scenarios) {
    const result = await resultOf(scenario, effort, run)
    measured.push(result)
    console.log(`${tableOf(result)}\n`)
  }
  return { scenarios: measured }
}
