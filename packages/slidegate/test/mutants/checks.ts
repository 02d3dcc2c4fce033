import { setMaxListeners } from 'node:events'
import { type RunnerTask, type RunnerTestCase, type RunnerTestSuite, TestRunner } from 'vitest'

/** A collected test that can run many times, with different scripts. */
export interface Check {
  /** The name in a report. */
  readonly name: string
  run(): Promise<void>
}

type Hook = (context: object, suite: RunnerTestSuite) => unknown

const found = new Set<RunnerTestSuite>()
const started = new Set<RunnerTestSuite>()

/** Returns the checks of a suite. Their names don't include it. */
export function checksIn(suite: RunnerTestSuite, outer: readonly RunnerTestSuite[] = []): Check[] {
  found.add(suite)
  const suites = [...outer, suite]
  return suite.tasks.flatMap((task: RunnerTask) =>
    task.type === 'suite' ? checksIn(task, suites) : [checkOf(task, suites)],
  )
}

function checkOf(task: RunnerTestCase, suites: readonly RunnerTestSuite[]): Check {
  // Each run leaves a listener.
  setMaxListeners(0, task.context.signal)
  const runHooks = async (which: 'beforeEach' | 'afterEach') => {
    for (const suite of suites) await runAll(TestRunner.getSuiteHooks(suite)[which], task.context, suite)
  }
  return {
    name: [...suites.slice(1), task].map(({ name }) => name).join(' > '),
    async run() {
      for (const suite of suites) await startOnce(suite)
      try {
        await runHooks('beforeEach')
        await TestRunner.getTestFn(task)()
      } finally {
        await runHooks('afterEach')
      }
    },
  }
}

async function startOnce(suite: RunnerTestSuite): Promise<void> {
  if (started.has(suite)) return
  started.add(suite)
  await runAll(TestRunner.getSuiteHooks(suite).beforeAll, {}, suite)
}

/** Runs the `afterAll` hooks of all suites. */
export async function endSuites(): Promise<void> {
  for (const suite of found) {
    const ended = runAll(TestRunner.getSuiteHooks(suite).afterAll, {}, suite)
    // The hooks of a suite that never started may fail.
    await (started.has(suite) ? ended : ended.catch(() => {}))
  }
}

async function runAll(hooks: readonly unknown[], context: object, suite: RunnerTestSuite): Promise<void> {
  for (const hook of hooks) await (hook as Hook)(context, suite)
}
