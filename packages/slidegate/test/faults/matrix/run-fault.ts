import { setTimeout as delay, setImmediate as nextTurn } from 'node:timers/promises'
import type { OnStoreError } from '../../../src/index.ts'
import { until } from '../../support/until.ts'
import { connectorOf, type MatrixClient } from './clients.ts'
import { startControlCalls } from './control-calls.ts'
import type { Course, Fault } from './fault.ts'
import { bytesInUse, Meter } from './meter.ts'
import { type Moments, type PolicyReport, policyReport, type Report } from './report.ts'
import { Subject } from './subject.ts'

const WARM_MS = 200

/** The store must answer all calls for this long to count as back. */
const STEADY_MS = 300

/** A client that hasn't recovered by then counts as lost. */
const GIVEN_UP_MS = 12_000

/** Injects a fault under traffic, with all policies at once, and reports the results. */
export async function runFault(
  fault: Fault,
  client: MatrixClient,
  policies: readonly OnStoreError[],
): Promise<Report> {
  const scene = await fault.setUp()
  const connect = connectorOf(client, fault.on)!
  const connections = await Promise.all(policies.map(() => connect(scene.target)))
  const subjects = policies.map((policy, i) => new Subject(policy, connections[i]!.client))
  let meter: Meter | undefined
  let stopControl = () => 0
  try {
    await until('the store answers', async () =>
      subjects.every(({ calls }) => calls.outcomes(0).has('store')),
    )
    const bytesBefore = bytesInUse()
    // Calls that waited for garbage collection don't count. Timers set before the next turn fire too early.
    await nextTurn()
    await delay(WARM_MS)
    if (fault.isFelt === 'never') stopControl = await startControlCalls(scene.target.port)
    meter = new Meter()
    const moments = await happen(fault, scene)
    const controlMs = stopControl()
    const backMs = await back(subjects, moments.returnedMs)
    meter.stop()
    await Promise.all(subjects.map((subject) => subject.stop()))
    const reports: PolicyReport[] = []
    for (const [i, subject] of subjects.entries()) {
      reports.push(await policyReport(subject, moments, backMs[i]!, fault))
    }
    return {
      fault,
      client,
      policies: reports,
      healMs: moments.returnedMs - moments.healMs,
      lateMs: meter.lateMs,
      controlMs,
      blockedMs: meter.blockedMs,
      stoodMs: meter.stoodMs,
      grownBytes: bytesInUse() - bytesBefore,
    }
  } finally {
    meter?.stop()
    stopControl()
    await Promise.all(subjects.map((subject) => subject.stop()))
    for (const subject of subjects) subject.close()
    for (const { end } of connections) await end()
    await scene.end()
  }
}

async function happen({ lastsMs }: Fault, { inject, heal }: Course): Promise<Moments> {
  const injectedMs = performance.now()
  await inject()
  await delay(Math.max(0, lastsMs - (performance.now() - injectedMs)))
  const healMs = performance.now()
  await heal()
  return { injectedMs, healMs, returnedMs: performance.now() }
}

/** Returns how long each subject took to recover, or `Infinity` if it took too long. */
async function back(subjects: readonly Subject[], returnedMs: number): Promise<number[]> {
  for (;;) {
    await delay(50)
    const nowMs = performance.now()
    const since = subjects.map(({ calls }) => calls.answeredSinceMs(returnedMs))
    const areBack = since.map((sinceMs) => nowMs - sinceMs >= STEADY_MS)
    if (areBack.every(Boolean) || nowMs - returnedMs > GIVEN_UP_MS) {
      return since.map((sinceMs, i) => (areBack[i] ? sinceMs - returnedMs : Number.POSITIVE_INFINITY))
    }
  }
}
