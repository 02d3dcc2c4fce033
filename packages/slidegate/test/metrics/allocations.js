// @ts-check
// How many bytes are allocated for each of 100,000 of these, on the package as it was built. The heap is so large that nothing
// is collected meanwhile, so all that was allocated is still there.
import { createLimiter, memoryStore, slidingWindow } from 'slidegate'
import { DecisionCounts } from 'slidegate/metrics'
import { measure } from 'slidegate/opentelemetry'
import { CallCounts } from '../../dist/stores/redis/call-counts.js'

const TIMES = 100_000

/** @param {(i: number) => void} work */
function bytesEach(work) {
  // Until the compiler has looked at it.
  for (let i = 0; i < TIMES; i++) work(i)
  let least = Number.POSITIVE_INFINITY
  for (let round = 0; round < 5; round++) {
    globalThis.gc?.()
    const before = process.memoryUsage().heapUsed
    for (let i = 0; i < TIMES; i++) work(i)
    least = Math.min(least, (process.memoryUsage().heapUsed - before) / TIMES)
  }
  return least
}

function create() {
  const limits = [
    slidingWindow({ limit: 10_000_000, window: '1h' }),
    slidingWindow({ limit: 10_000_000, window: '1d' }),
  ]
  return createLimiter({ limits, store: memoryStore({ clock: () => 1_700_000_000_000 }) })
}

function consumed(limiter = create()) {
  return bytesEach(() => void limiter.consumeSync('user:1'))
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

// The first leave feedback for the compiler that the others have, too: of one that nobody measures, and of one that somebody does.
consumed()
const first = create()
measure(first)
consumed(first)
const bytes = {
  never: consumed(),
  stopped: consumed(stopped),
  measured: consumed(measured),
  counting: bytesEach((i) => counts.add(decisions[i % 100] ?? decision)),
  calls: bytesEach((i) => {
    calls.sent(i % 300, i % 100)
    calls.answered(i / 7)
  }),
}
process.stdout.write(JSON.stringify(bytes))
