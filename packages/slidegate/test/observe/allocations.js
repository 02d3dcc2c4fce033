// @ts-check
// Prints the bytes allocated per call over 100,000 calls, with the built package.
import { createLimiter, memoryStore, slidingWindow } from 'slidegate'
import { DecisionCounts } from 'slidegate/metrics'
import { measure } from 'slidegate/opentelemetry'
import { CallCounts } from '../../src/stores/redis/call-counts.ts'
import { bytesEach } from '../support/allocated.js'

const TIMES = 100_000

/** @param {(i: number) => void} work */
function each(work) {
  return bytesEach(TIMES, () => {
    for (let i = 0; i < TIMES; i++) work(i)
  })
}

function create() {
  const limits = [
    slidingWindow({ limit: 10_000_000, window: '1h' }),
    slidingWindow({ limit: 10_000_000, window: '1d' }),
  ]
  return createLimiter({ limits, store: memoryStore({ clock: () => 1_700_000_000_000 }) })
}

function consumed(limiter = create()) {
  return each(() => void limiter.consumeSync('user:1'))
}

const stopped = create()
measure(stopped)()
const measured = create()
measure(measured)
const limiter = create()
const decision = limiter.consumeSync('user:1')
const decisions = Array.from({ length: 100 }, () => limiter.consumeSync('user:1'))
const counts = new DecisionCounts()
const calls = new CallCounts()

// The first runs show the compiler both a measured and an unmeasured limiter.
await consumed()
const first = create()
measure(first)
await consumed(first)
const bytes = {
  never: await consumed(),
  stopped: await consumed(stopped),
  measured: await consumed(measured),
  counting: await each((i) => counts.add(decisions[i % 100] ?? decision)),
  calls: await each((i) => {
    calls.sent(i % 300, i % 100)
    calls.answered(i / 7)
  }),
}
process.stdout.write(JSON.stringify(bytes))
