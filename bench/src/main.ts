import { writeFile } from 'node:fs/promises'
import { describeMachine } from './machine.ts'
import { type Options, parseOptions } from './options.ts'
import { headOf, jsonOf, type Result, summaryOf, tableOf } from './report.ts'
import type { Effort, Scenario } from './scenario.ts'
import { bound } from './scenarios/bound.ts'
import { bytes } from './scenarios/bytes.ts'
import { memory } from './scenarios/memory.ts'
import { redisCpu } from './scenarios/redis-cpu.ts'
import { oneAtATime, throughput } from './scenarios/throughput.ts'

const SCENARIOS: readonly Scenario[] = [throughput, oneAtATime, redisCpu, bytes, bound, memory]

/** The bench takes nowhere near as long; if it does, it hangs. */
const MOST_MINUTES = { short: 10, full: 60 }

const startedAt = new Date()
// So that the servers that were started end too.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1))

const { effort, scenarios, jsonFile } = optionsOrExit()
setTimeout(() => {
  console.error('the bench hangs and is given up')
  process.exit(1)
}, MOST_MINUTES[effort.mode] * 60_000).unref()
const machine = await describeMachine()
console.log(`${headOf(effort, machine)}\n`)
const results: Result[] = []
for (const scenario of scenarios) {
  const result = await resultOf(scenario, effort)
  results.push(result)
  console.log(`${tableOf(result)}\n`)
}
console.log(summaryOf(results))
if (jsonFile !== undefined) await writeFile(jsonFile, jsonOf(startedAt, effort, machine, results))
process.exit(results.some(({ error }) => error !== undefined) ? 1 : 0)

function optionsOrExit(): Options {
  try {
    return parseOptions(process.argv.slice(2), SCENARIOS)
  } catch (error) {
    console.error(error instanceof Error ? error.message : error)
    process.exit(2)
  }
}

/** What a scenario gave, or why it failed: then the others are still measured. */
async function resultOf(scenario: Scenario, effort: Effort): Promise<Result> {
  const start = performance.now()
  const seconds = () => (performance.now() - start) / 1000
  try {
    const figures = await scenario.run(effort)
    return { scenario, figures, seconds: seconds() }
  } catch (error) {
    return {
      scenario,
      figures: [],
      seconds: seconds(),
      error: error instanceof Error ? (error.stack ?? error.message) : String(error),
    }
  }
}
