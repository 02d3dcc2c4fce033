import type { Redis } from 'ioredis'
import {
  createLimiter,
  type Decision,
  type Source,
  type Store,
  slidingWindow,
  withDenyCache,
  withLeases,
} from 'slidegate'
import { redisStore } from 'slidegate/redis'
import { anyOf, callers } from '../callers.ts'
import { boundToCores } from '../cores.ts'
import { inMicroseconds } from '../format.ts'
import { clientCpuOf, closedLoop, type Load, perSecond, type Requests } from '../load.ts'
import { interleave, median, ratios, sum } from '../measure.ts'
import type { Policy } from '../peers/peer.ts'
import { evalshaFloor } from '../redis/floor.ts'
import { scriptCalls } from '../redis/info.ts'
import { withRedis } from '../redis/with-redis.ts'
import type { Effort, Figure, Scenario, Target } from '../scenario.ts'
import { PATIENCE_MS } from '../sides.ts'

interface Setting {
  readonly name: string
  readonly wrap: (store: Store) => Store
  readonly policy: Policy
  readonly keys: number
  /** The source of nearly all decisions. */
  readonly source: Source
  readonly isAllowed: boolean
  /** The target, compared with an EVALSHA that does nothing. */
  readonly speed?: Target
  readonly callsPerThousand?: Target
}

const DENY_CACHE = {
  wrap: withDenyCache,
  policy: { limit: 10, windowMs: 3_600_000 },
  source: 'denyCache',
  isAllowed: false,
} as const

const SETTINGS: readonly Setting[] = [
  { ...DENY_CACHE, name: 'deny cache, one key, all denied', keys: 1, speed: { atLeast: 60 } },
  { ...DENY_CACHE, name: 'deny cache, 1,000 keys, all denied', keys: 1000 },
  {
    name: 'leases, one hot key, all admitted',
    wrap: withLeases,
    policy: { limit: 10_000_000, windowMs: 1000 },
    keys: 1,
    source: 'lease',
    isAllowed: true,
    speed: { atLeast: 20 },
    callsPerThousand: { atMost: 20 },
  },
]

/** Requests between two readings of the clock. With local answers only, timers would never run. */
const STRIDE = 500

export const local: Scenario = {
  name: 'local',
  title:
    'Decisions without a call to Redis, one at a time, compared with one EVALSHA of `return 1` per request',
  async run(effort) {
    const figures: Figure[] = []
    for (const setting of SETTINGS) {
      const measured = await withRedis((redis, pid) => {
        const use = () => measure(redis, setting, effort)
        return effort.isPinned ? boundToCores(pid, 'together', use) : use()
      })
      figures.push(...measured)
    }
    return figures
  },
}

/** The result of a turn, with the number of script calls. */
interface Turn extends Load {
  readonly calls: number
}

async function measure(redis: Redis, setting: Setting, { rounds, turnMs }: Effort): Promise<Figure[]> {
  const { policy, wrap, source, isAllowed } = setting
  const store = wrap(redisStore(redis))
  const limiter = createLimiter({
    name: 'bench',
    limits: [slidingWindow({ limit: policy.limit, window: policy.windowMs })],
    store,
    timeoutMs: PATIENCE_MS,
  })
  const keys = callers(setting.keys)
  if (!isAllowed) await Promise.all(keys.map((key) => limiter.consume(key, { cost: policy.limit })))
  let fromSource = 0
  const decisions: Requests<Decision> = {
    pick: anyOf(keys.length),
    ask: (caller) => limiter.consume(keys[caller]!),
    check(decision) {
      if (decision.allowed !== isAllowed) throw new Error(`Unexpected decision: ${JSON.stringify(decision)}`)
      if (decision.source === source) fromSource++
    },
  }
  const floor = await evalshaFloor(redis)
  const floorCalls: Requests<unknown> = {
    pick: anyOf(keys.length),
    ask: (caller) => floor.ask(`floor:{0}:bench:${keys[caller]}:w1`),
    check(answer) {
      if (!floor.isAnswer(answer)) throw new Error(`Unexpected reply of ${floor.name}: ${answer}`)
    },
  }
  const turn = async <Answer>(requests: Requests<Answer>): Promise<Turn> => {
    const before = await scriptCalls(redis)
    const load = await loadFor(turnMs, requests)
    return { ...load, calls: (await scriptCalls(redis)).calls - before.calls }
  }
  const turns = await interleave({ slidegate: () => turn(decisions), floor: () => turn(floorCalls) }, rounds)
  const requests = sum(turns.slidegate.map((each) => each.requests))
  if (fromSource < 0.9 * requests)
    throw new Error(`Only ${fromSource} of ${requests} decisions have the source ${source}`)
  limiter.close()
  await store.close()
  return figuresOf(setting, turns.slidegate, turns.floor)
}

/** Makes one request after another for `ms` milliseconds. */
async function loadFor<Answer>(ms: number, requests: Requests<Answer>): Promise<Load> {
  const total = { requests: 0, seconds: 0, clientCpuSeconds: 0 }
  while (total.seconds * 1000 < ms) {
    const load = await closedLoop(1, { requests: STRIDE }, requests)
    total.requests += load.requests
    total.seconds += load.seconds
    total.clientCpuSeconds += load.clientCpuSeconds
  }
  return total
}

function figuresOf(setting: Setting, ours: readonly Turn[], floor: readonly Turn[]): Figure[] {
  const { name, policy, speed, callsPerThousand } = setting
  const [ourRate, floorRate] = [ours.map(perSecond), floor.map(perSecond)]
  const faster = ratios(ourRate, floorRate)
  const calls = ours.map((turn) => (1000 * turn.calls) / turn.requests)
  const [ourCpu, floorCpu] = [ours.map(clientCpuOf), floor.map(clientCpuOf)]
  return [
    {
      name: `${name}: decisions per second`,
      value: median(faster),
      unit: 'x',
      ...(speed && { target: speed }),
      spread: faster,
      note: `${inMicroseconds(ourRate.map((rate) => 1 / rate))} vs. ${inMicroseconds(
        floorRate.map((rate) => 1 / rate),
      )}; limit ${policy.limit} per ${policy.windowMs} ms`,
      raw: {
        ...{ slidegatePerSecond: ourRate, floorPerSecond: floorRate },
        ...{ slidegateCpuSeconds: ourCpu, floorCpuSeconds: floorCpu },
      },
    },
    {
      name: `${name}: Redis calls`,
      value: median(calls),
      unit: 'per 1,000',
      ...(callsPerThousand && { target: callsPerThousand }),
      spread: calls,
      raw: { callsPerThousand: calls },
    },
  ]
}
