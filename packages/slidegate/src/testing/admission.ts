import assert from 'node:assert/strict'
import { fixedWindow } from '../limits/fixed-window.ts'
import { slidingWindow } from '../limits/sliding-window.ts'
import { admits, type ConformanceCase, conformanceCase, denies, left, opensIn } from './conformance-case.ts'

/** Who is admitted, and what that costs. */
export const admission: readonly ConformanceCase[] = [
  conformanceCase('a limit admits exactly its units', async ({ limiter }) => {
    const limited = limiter([slidingWindow({ limit: 5, window: '10s' })])
    for (const remaining of [4, 3, 2, 1, 0]) {
      assert.equal((await admits(limited, 'k')).remaining, remaining)
    }
    await denies(limited, 'k')
  }),

  conformanceCase('a charge counts while less than the window has passed since', async (scene) => {
    const limited = scene.limiter([slidingWindow({ limit: 1, window: '10s' })])
    await admits(limited, 'k')
    await opensIn(scene, 10_000, limited, 'k')
    await opensIn(scene, 10_000, limited, 'k')
  }),

  conformanceCase('the window slides: each charge leaves it on its own', async (scene) => {
    const limited = scene.limiter([slidingWindow({ limit: 3, window: '1s' })])
    await admits(limited, 'k')
    scene.clock.advance(300)
    await admits(limited, 'k')
    scene.clock.advance(300)
    await admits(limited, 'k')
    await opensIn(scene, 400, limited, 'k')
    await opensIn(scene, 300, limited, 'k')
    await opensIn(scene, 300, limited, 'k')
    await opensIn(scene, 400, limited, 'k')
  }),

  conformanceCase('no window holds more than its limit, and whatever fits is admitted', async (scene) => {
    const rules = [
      { limit: 7, window: 1000 },
      { limit: 12, window: 3000 },
    ]
    const limited = scene.limiter(rules.map((rule) => slidingWindow(rule)))
    const admitted: { atMs: number; cost: number }[] = []
    const random = pseudoRandom()
    for (let request = 0; request < 400; request++) {
      scene.clock.advance(random(250))
      const cost = 1 + random(3)
      const nowMs = scene.clock.now()
      const used = (window: number) =>
        admitted.reduce((sum, event) => sum + (nowMs - event.atMs < window ? event.cost : 0), 0)
      const fits = rules.every(({ limit, window }) => used(window) + cost <= limit)
      const { allowed, atMs } = await limited.consume('k', { cost })
      assert.deepEqual({ request, allowed, atMs }, { request, allowed: fits, atMs: nowMs })
      if (allowed) admitted.push({ atMs, cost })
    }
    assert.ok(admitted.length > 100 && admitted.length < 300)
  }),

  conformanceCase('a request takes as many units as it costs', async ({ limiter }) => {
    const limited = limiter([slidingWindow({ limit: 10, window: '10s' })])
    assert.equal((await admits(limited, 'k', 7)).remaining, 3)
    await denies(limited, 'k', 4)
    assert.equal((await admits(limited, 'k', 3)).remaining, 0)
  }),

  conformanceCase('a denial charges nothing', async ({ limiter }) => {
    const limited = limiter([slidingWindow({ limit: 10, window: '10s' })])
    await admits(limited, 'k', 8)
    assert.equal((await denies(limited, 'k', 8)).remaining, 2)
    assert.equal((await admits(limited, 'k', 2)).remaining, 0)
  }),

  conformanceCase('hammering while denied does not move the next admission', async (scene) => {
    const limited = scene.limiter([
      slidingWindow({ limit: 2, window: '1s' }),
      fixedWindow({ limit: 3, window: '1s', name: 'fixed' }),
    ])
    await admits(limited, 'k', 2)
    for (let atMs = 0; atMs < 1000; atMs += 50) {
      assert.equal((await denies(limited, 'k', 2)).retryAfterMs, 1000 - atMs)
      scene.clock.advance(50)
    }
    await admits(limited, 'k', 2)
  }),

  conformanceCase('a cost above a limit is denied for ever, and charges nothing', async ({ limiter }) => {
    const small = slidingWindow({ limit: 5, window: '10s', name: 'small' })
    const fixed = fixedWindow({ limit: 6, window: '10s', name: 'fixed' })
    const large = slidingWindow({ limit: 100, window: '10s', name: 'large' })
    for (const [i, limits] of [[small], [fixed, small], [small, fixed, large]].entries()) {
      const limited = limiter(limits)
      const key = `${i}`
      await admits(limited, key, 2)
      const decision = await denies(limited, key, 6)
      assert.equal(decision.retryAfterMs, Number.POSITIVE_INFINITY)
      assert.ok(decision.deniedBy.includes('small'))
      const { deniedBy } = await denies(limited, key, Number.MAX_SAFE_INTEGER)
      assert.deepEqual(
        deniedBy,
        limits.map(({ name }) => name),
      )
      assert.equal((await admits(limited, key, 3)).remaining, 0)
    }
  }),

  conformanceCase('several limits are charged all or none', async ({ clock, limiter }) => {
    const limited = limiter([
      slidingWindow({ limit: 2, window: '1s', name: 'second' }),
      fixedWindow({ limit: 6, window: '10s', name: 'fixed' }),
      slidingWindow({ limit: 4, window: '10s', precision: 100, name: 'coarse' }),
    ])
    const remaining = async () => (await limited.peek('k')).limits.map((limit) => limit.remaining)
    await admits(limited, 'k', 2)
    for (let i = 0; i < 10; i++) assert.deepEqual((await denies(limited, 'k')).deniedBy, ['second'])
    assert.deepEqual(await remaining(), [0, 4, 2])
    clock.advance(1000)
    await admits(limited, 'k')
    assert.deepEqual((await denies(limited, 'k', 2)).deniedBy, ['second', 'coarse'])
    await admits(limited, 'k')
    clock.advance(1000)
    assert.deepEqual((await denies(limited, 'k')).deniedBy, ['coarse'])
    assert.deepEqual(await remaining(), [2, 2, 0])
  }),

  conformanceCase('of requests made at once the first are admitted, in their order', async ({ limiter }) => {
    const limited = limiter([slidingWindow({ limit: 4, window: '10s' })])
    const decisions = await Promise.all(Array.from({ length: 7 }, () => limited.consume('k')))
    assert.deepEqual(
      decisions.map((decision) => decision.allowed),
      [true, true, true, true, false, false, false],
    )
    assert.deepEqual(
      decisions.map((decision) => decision.remaining),
      [3, 2, 1, 0, 0, 0, 0],
    )
    assert.equal(await left(limited, 'k'), 0)
  }),
]

/** The same whole numbers below a bound on every run. */
function pseudoRandom(): (bound: number) => number {
  let state = 1
  return (bound) => {
    state = (state * 48_271) % 2_147_483_647
    return state % bound
  }
}
