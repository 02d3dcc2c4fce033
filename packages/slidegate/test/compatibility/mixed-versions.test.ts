// tier: integration
import { randomUUID } from 'node:crypto'
import { expect, it } from 'vitest'
import { useRedis } from '../support/use-redis.ts'
import { type Build, otherBuild, type Process, startProcess, thisBuild } from './mixed-processes.ts'

// Processes of two builds at the same time, as while a new version is rolled out: on one Redis, and as client and service.

const { server } = await useRedis()
const START_MS = 1_700_000_000_000

interface Processes extends Disposable {
  readonly all: readonly Process[]
  /** Of this build, with overrides. */
  readonly changing: Process
  readonly plain: Process
  /** Of the other, without. */
  readonly old: Process
}

/** Two of each build, the first of them with overrides, if the other has them as this one does. */
async function onOneRedis(other: Build): Promise<Processes> {
  const all = [thisBuild, thisBuild, other, other].map(startProcess)
  const prefix = `slidegate:test:${randomUUID()}`
  for (const [i, each] of all.entries()) {
    const overrides = i === 0 || (i === 2 && process.env.OTHER_BUILD === undefined)
    const open = { what: 'open', port: server.port, prefix, overrides } as const
    expect(await each.order({ nowMs: START_MS, ...open })).toEqual({})
  }
  const [changing, plain, , old] = all as [Process, Process, Process, Process]
  const end = () => {
    for (const each of all) each[Symbol.dispose]()
  }
  return { all, changing, plain, old, [Symbol.dispose]: end }
}

it('all count on the same log, and none admits more than the limit that is in force for it', async () => {
  using other = otherBuild()
  using processes = await onOneRedis(other)
  const { changing, plain, old } = processes
  const consume = async (process: Process, nowMs: number, times = 1) =>
    (await process.order({ nowMs, what: 'consume', times })).admitted!
  await changing.order({ nowMs: START_MS, what: 'override', change: { own: { limit: 8 } } })
  expect(await consume(old, START_MS, 3)).toBe(3)
  expect(await consume(plain, START_MS, 4)).toBe(2)
  expect(await consume(old, START_MS)).toBe(0)
  expect(await consume(changing, START_MS, 4)).toBe(3)
  await changing.order({ nowMs: START_MS, what: 'override', change: { own: { limit: 2 } } })
  expect(await consume(changing, START_MS + 1001)).toBe(1)
  expect(await consume(old, START_MS + 1001, 9)).toBe(4)
  expect(await consume(changing, START_MS + 1001)).toBe(0)
  await changing.order({ nowMs: START_MS + 1001, what: 'override', change: 'block' })
  expect(await consume(changing, START_MS + 2002)).toBe(0)
  expect(await consume(old, START_MS + 2002)).toBe(1)
})

it('no window holds more than the greatest limit that was in force in it, whoever admits at the same time', async () => {
  using other = otherBuild()
  using processes = await onOneRedis(other)
  const inForce: { readonly sinceMs: number; readonly limit: number }[] = []
  const admitted: { readonly atMs: number; readonly units: number }[] = []
  for (let round = 0; round < 80; round++) {
    const nowMs = START_MS + round * 137
    if (round % 3 === 0) {
      const limit = [12, 2, 7, 1][(round / 3) % 4]!
      await processes.changing.order({ nowMs, what: 'override', change: { own: { limit } } })
      inForce.push({ sinceMs: nowMs, limit })
    }
    const answers = await Promise.all(
      processes.all.map((each, i) => each.order({ nowMs, what: 'consume', times: 1 + ((round + i) % 4) })),
    )
    admitted.push({ atMs: nowMs, units: answers.reduce((sum, answer) => sum + answer.admitted!, 0) })
    const inWindow = admitted
      .filter(({ atMs }) => atMs > nowMs - 1000)
      .reduce((sum, { units }) => sum + units, 0)
    // What was in force as the window began was set before it.
    const since = inForce.filter(({ sinceMs }) => sinceMs <= nowMs - 1000).length - 1
    const greatest = Math.max(5, ...inForce.slice(Math.max(0, since)).map(({ limit }) => limit))
    expect(inWindow).toBeLessThanOrEqual(greatest)
  }
  expect(admitted.reduce((sum, { units }) => sum + units, 0)).toBeGreaterThan(40)
})

it.each([
  ['a service of another version refuses a client of this one', true],
  ['a service of this version refuses a client of another one', false],
])('%s by the versions of both, and charges nothing', async (_, isClient) => {
  using other = otherBuild()
  const [asking, serving] = isClient ? [thisBuild, other] : [other, thisBuild]
  using service = startProcess(serving)
  using client = startProcess(asking)
  const { url } = await service.order({ nowMs: START_MS, what: 'serve' })
  await client.order({ nowMs: START_MS, what: 'ask', url: url! })
  const { error } = await client.order({ nowMs: START_MS, what: 'consume', times: 1 })
  expect(error).toMatchObject({ name: 'StoreUnavailableError', reason: 'error' })
  expect(error!.message).toMatch(
    new RegExp(`400: .*version .*\\b${asking.wireVersion}\\b.*\\b${serving.wireVersion}\\b`),
  )
  expect(await service.order({ nowMs: START_MS, what: 'peek' })).toEqual({ used: 0 })
  using own = startProcess(serving)
  await own.order({ nowMs: START_MS, what: 'ask', url: url! })
  expect(await own.order({ nowMs: START_MS, what: 'consume', times: 1 })).toEqual({ admitted: 1 })
  expect(await service.order({ nowMs: START_MS, what: 'peek' })).toEqual({ used: 1 })
})
