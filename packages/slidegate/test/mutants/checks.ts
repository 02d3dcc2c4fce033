import { setMaxListeners } from 'node:events'
import { type RunnerTask, type RunnerTestCase, type RunnerTestSuite, TestRunner } from 'vitest'

/** A test that was collected in the usual way, and is run whenever it is asked for, by whatever script is in use. */
export interface Check {
  /** As a reporter would tell it. */
  readonly name: string
  run(): Promise<void>
}

type Hook = (context: object, suite: RunnerTestSuite) => unknown

const found = new Set<RunnerTestSuite>()
const begun = new Set<RunnerTestSuite>()

/** Those of a suite, which is not told by their names. */
export function checksIn(suite: RunnerTestSuite, outer: readonly RunnerTestSuite[] = []): Check[] {
  found.add(suite)
  const suites = [...outer, suite]
  return suite.tasks.flatMap((task: RunnerTask) =>
    task.type === 'suite' ? checksIn(task, suites) : [checkOf(task, suites)],
  )
}

function checkOf(task: RunnerTestCase, suites: readonly RunnerTestSuite[]): Check {
  // Each run leaves a listener there.
  setMaxListeners(0, task.context.signal)
  const runHooks = async (which: 'beforeEach' | 'afterEach') => {
    for (const suite of suites) await runAll(TestRunner.getSuiteHooks(suite)[which], task.context, suite)
  }
  return {
    name: [...suites.slice(1), task].map(({ name }) => name).join(' > '),
    async run() {
      for (const suite of suites) await begin(suite)
      try {
        await runHooks('beforeEach')
        await TestRunner.getTestFn(task)()
      } finally {
        await runHooks('afterEach')
      }
    },
  }
}

async function begin(suite: RunnerTestSuite): Promise<void> {
  if (begun.has(suite)) return
  begun.add(suite)
  await runAll(TestRunner.getSuiteHooks(suite).beforeAll, {}, suite)
}

/** Ends what the suites have begun, or their files, when they were loaded. */
export async function endSuites(): Promise<void> {
  for (const suite of found) {
    const ended = runAll(TestRunner.getSuiteHooks(suite).afterAll, {}, suite)
    // What was never begun may have nothing to end.
    await (begun.has(suite) ? ended : ended.catch(() => {}))
  }
}

async function runAll(hooks: readonly unknown[], context: object, suite: RunnerTestSuite): Promise<void> {
  for (const hook of hooks) await (hook as Hook)(context, suite)
}
