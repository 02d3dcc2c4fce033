import { setImmediate } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import {
  dueMs,
  type LoadClock,
  ratesOf,
  runRamp,
  runStep,
  type Send,
  type Step,
  type StepOptions,
  saturationOf,
} from '../../src/load/ramp.ts'

/** A clock that jumps to the next time. Lets pending promises settle before. */
class TestClock implements LoadClock {
  #nowMs = 1000
  readonly #timers: { readonly atMs: number; readonly run: () => void }[] = []

  now(): number {
    return this.#nowMs
  }

  async until(atMs: number): Promise<void> {
    const endMs = Math.max(atMs, this.#nowMs)
    for (;;) {
      await setImmediate()
      this.#timers.sort((a, b) => a.atMs - b.atMs)
      const [next] = this.#timers
      if (next === undefined || next.atMs > endMs) break
      this.#timers.shift()
      this.#nowMs = Math.max(this.#nowMs, next.atMs)
      next.run()
    }
    this.#nowMs = endMs
    await setImmediate()
  }

  /** Lets time pass while this process does nothing else. */
  block(ms: number): void {
    this.#nowMs += ms
  }

  /** Resolves after this time. */
  after(ms: number): Promise<void> {
    return new Promise((resolve) => this.#timers.push({ atMs: this.#nowMs + ms, run: resolve }))
  }

  /** Runs the timers that are left. */
  async finish(): Promise<void> {
    while (this.#timers.length > 0) await this.until(Math.max(...this.#timers.map(({ atMs }) => atMs)))
  }
}

const { signal } = new AbortController()

function step(clock: TestClock, send: Send, options: Partial<StepOptions> = {}): Promise<Step> {
  return runStep({ rate: 100, seconds: 1, maxInFlight: 1000, send, clock, signal, ...options })
}

describe('the rates of a ramp', () => {
  it.each([
    ['double', 100, 1000, 2, [100, 200, 400, 800, 1000]],
    ['always grow', 1, 4, 1.1, [1, 2, 3, 4]],
    ['end with the last rate', 100, 800, 2, [100, 200, 400, 800]],
    ['can be one rate', 50, 50, 2, [50]],
  ])('%s', (_, from, to, factor, rates) => {
    expect(ratesOf(from, to, factor)).toEqual(rates)
  })
})

describe('a step', () => {
  it('sends each request at its time, whatever the responses', async () => {
    const clock = new TestClock()
    const sentMs: number[] = []
    const running = step(
      clock,
      async () => {
        sentMs.push(clock.now() - 1000)
        await clock.after(5000)
        return true
      },
      { rate: 10 },
    )
    await expect.poll(() => sentMs.length).toBe(10)
    expect(sentMs).toEqual(Array.from({ length: 10 }, (_, i) => dueMs(i, 10)))
    await clock.finish()
    expect(await running).toMatchObject({ requests: 10, unsent: 0, latencyMs: { p50: 5000, max: 5000 } })
  })

  it('measures from the scheduled time if the sender is late', async () => {
    const clock = new TestClock()
    const { latencyMs } = await step(clock, async (i) => {
      if (i === 0) clock.block(500)
      return true
    })
    // The first request took as long, and those due in the meantime waited for the rest of it.
    expect(latencyMs).toMatchObject({ max: 500, p99: 490, p90: 400, p50: 0 })
  })

  it('counts denials, and errors with the first message', async () => {
    const counted = await step(new TestClock(), async (i) => {
      if (i % 10 === 9) throw new Error(`error ${i}`)
      return i % 2 === 0
    })
    expect(counted).toMatchObject({ requests: 100, denied: 40, errors: 10, firstError: 'error 9' })
    expect(counted.achieved).toBe(90)
  })

  it('ends early if too many requests are in flight', async () => {
    const clock = new TestClock()
    const running = step(clock, () => clock.after(10_000).then(() => true), { maxInFlight: 20 })
    await expect.poll(() => clock.now()).toBe(1200)
    await clock.finish()
    expect(await running).toMatchObject({ requests: 20, unsent: 80 })
  })

  it('achieves the rate at which decisions arrive', async () => {
    const clock = new TestClock()
    let freeMs = clock.now()
    // Serves 50 per second, one after the other.
    const running = step(clock, async () => {
      freeMs = Math.max(freeMs, clock.now()) + 20
      await clock.after(freeMs - clock.now())
      return true
    })
    await expect.poll(() => clock.now()).toBeGreaterThanOrEqual(1990)
    await clock.finish()
    expect(await running).toMatchObject({ offered: 100, achieved: 50, latencyMs: { max: 1010 } })
  })

  it('ends when it is stopped, even if nothing responds', async () => {
    const stopping = new AbortController()
    let sent = 0
    const send: Send = () => {
      if (++sent === 100) setImmediate().then(() => stopping.abort())
      return new Promise(() => {})
    }
    expect(await step(new TestClock(), send, { signal: stopping.signal })).toMatchObject({ requests: 100 })
  })

  it('sends nothing if it is stopped before', async () => {
    const { requests } = await step(new TestClock(), async () => true, { signal: AbortSignal.abort() })
    expect(requests).toBe(0)
  })
})

describe('saturation', () => {
  const fine: Step = {
    ...{ offered: 1000, achieved: 1000, requests: 1000, unsent: 0, denied: 0, errors: 0 },
    latencyMs: { p50: 1, p90: 1, p99: 1, p99_9: 1, max: 1 },
  }

  it.each<[string, Partial<Step>, ReturnType<typeof saturationOf>]>([
    ['all requests were decided in time', {}, undefined],
    ['90% is enough', { achieved: 900 }, undefined],
    ['less than 90% is too little', { achieved: 899 }, 'rate'],
    ['denials are decisions', { denied: 1000 }, undefined],
    ['1% of errors is few', { errors: 10, achieved: 990 }, undefined],
    ['more errors are too many', { errors: 11, achieved: 989 }, 'errors'],
    ['too many in flight', { unsent: 1, achieved: 1000 }, 'in flight'],
    ['errors come first', { unsent: 1, errors: 500, achieved: 1 }, 'errors'],
    ['slow responses alone', { latencyMs: { ...fine.latencyMs, p50: 5000 } }, undefined],
  ])('%s', (_, change, expected) => {
    expect(saturationOf({ ...fine, ...change })).toBe(expected)
  })

  it('ends the ramp', async () => {
    const clock = new TestClock()
    let inStep = 0
    const send: Send = async (i) => {
      inStep = i === 0 ? 1 : inStep + 1
      if (inStep > 300) throw new Error('overload')
      return true
    }
    const steps = await runRamp({
      ...{ rates: ratesOf(100, 1600, 2), seconds: 1, maxInFlight: 1000, send, clock, signal },
    })
    expect(steps.map(({ offered, errors }) => [offered, errors])).toEqual([
      [100, 0],
      [200, 0],
      [400, 100],
    ])
  })

  it('leaves out the step during which the ramp is stopped', async () => {
    const stopping = new AbortController()
    let sent = 0
    const send: Send = async () => {
      if (++sent === 150) stopping.abort()
      return true
    }
    const steps = await runRamp({
      ...{ rates: [100, 200, 400], seconds: 1, maxInFlight: 1000, send },
      ...{ clock: new TestClock(), signal: stopping.signal },
    })
    expect(steps.map(({ offered }) => offered)).toEqual([100])
    expect(sent).toBe(150)
  })
})
