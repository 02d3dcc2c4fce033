// tier: integration
import { pino } from 'pino'
import { type Decision, memoryStore } from 'slidegate'
import { expect, it, onTestFinished } from 'vitest'
import { Admin } from '../../src/admin/admin.ts'
import { everyByTimer } from '../../src/admin/timer.ts'
import { OneProcess, type Processes } from '../../src/service/instance.ts'
import { Service } from '../../src/service/service.ts'

const decision: Decision = {
  ...{
    allowed: false,
    cost: 1,
    remaining: 0,
    retryAfterMs: 500,
    resetAfterMs: 500,
    deniedBy: [],
    limits: [],
  },
  ...{ source: 'store', atMs: 1_700_000_000_000 },
}

function process(processes: Processes): { admin: Admin; service: Service } {
  const config = {
    limiters: { api: { limits: [{ kind: 'slidingWindow' as const, limit: 1, window: '1h' }] } },
  }
  const service = new Service(config, memoryStore())
  const log = pino({ level: 'silent' })
  const admin = new Admin({
    service,
    processes,
    store: { memory: {} },
    folder: '/',
    log,
    every: everyByTimer,
    isStoreDown: () => true,
    outageOf: () => undefined,
    fileState: () => 'applied',
  })
  onTestFinished(() => {
    admin.close()
    service.close()
  })
  return { admin, service }
}

/** Creates two processes of one instance. */
function twoProcesses(): ReturnType<typeof process>[] {
  const ends = [new OneProcess(), new OneProcess()]
  return ends.map((own) =>
    process({
      instance: 'both',
      answer: (question, answer) => own.answer(question, answer),
      ask: async (question, argument) =>
        (await Promise.all(ends.map((end) => end.ask(question, argument)))).flat(),
    }),
  )
}

it('every process reports the state of all', async () => {
  const [one, other] = twoProcesses()
  one!.admin.decided('api', 'ann', decision)
  other!.admin.decided('api', 'ann', decision)
  other!.admin.decided('api', 'bob', decision)
  for (const { admin } of [one!, other!]) {
    expect((await admin.topOf('api', 'denials', 10)).keys).toEqual([
      { key: 'ann', count: 2, error: 0 },
      { key: 'bob', count: 1, error: 0 },
    ])
    await expect.poll(async () => (await admin.usageOf('api'))[3]!.denied).toBe(3)
    expect((await admin.statesOf(['api'])).get('api')).toMatchObject({
      stats: { storeErrors: { timeout: 0 }, breakerOpened: 0 },
      waiting: { length: 0, expectedWaitMs: 0 },
    })
  }
})

it('merges the states of all processes', async () => {
  const [one, other] = twoProcesses()
  const controller = new AbortController()
  const waits = Promise.allSettled(
    [one!, other!].flatMap(({ service }) => {
      const { limiter } = service.get('api')
      return [1, 2, 3].map(() => limiter.wait('ann', { signal: controller.signal, maxWaitMs: 7_200_000 }))
    }),
  )
  await expect.poll(async () => (await one!.admin.statesOf(['api'])).get('api')?.waiting.length).toBe(4)
  controller.abort()
  const settled = await waits
  expect(settled.filter(({ status }) => status === 'fulfilled')).toHaveLength(2)
})

it('draining one process drains all', async () => {
  const both = twoProcesses()
  await both[0]!.admin.drain(true)
  expect(both.map(({ service }) => service.isDraining)).toEqual([true, true])
  await both[1]!.admin.drain(false)
  expect(both.map(({ service }) => service.isDraining)).toEqual([false, false])
})

it('lists an Envoy domain after its first decision', async () => {
  const { admin } = process(new OneProcess())
  expect(admin.seen()).toEqual([])
  admin.decided('envoy.edge', { rule: 'remote_address' }, decision)
  expect(admin.seen()).toEqual(['envoy.edge'])
})
