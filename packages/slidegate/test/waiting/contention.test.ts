import { expect, it, onTestFinished, vi } from 'vitest'
import { Contention } from '../../src/limiter/waiting/denial.ts'

/** Creates a `Contention` with a fixed random number. By default, its delays are the longest possible. */
function contention(random = 1): Contention {
  const spy = vi.spyOn(Math, 'random').mockReturnValue(random)
  onTestFinished(() => spy.mockRestore())
  return new Contention()
}

it('a process that waits alone adds no delay', () => {
  const alone = contention()
  for (let i = 0; i < 20; i++) {
    expect(alone.delayMs()).toBe(0)
    alone.admitted()
  }
})

it('the delay is random, up to 20 ms', () => {
  const shared = contention(0.25)
  shared.lost()
  shared.admitted()
  expect(shared.delayMs()).toBe(5)
})

it('the delay halves with each loss, and is reset by an admission', () => {
  const shared = contention()
  const delays = Array.from({ length: 4 }, () => {
    shared.lost()
    return shared.delayMs()
  })
  expect(delays).toEqual([10, 5, 2.5, 1.25])
  shared.admitted()
  expect(shared.delayMs()).toBe(20)
})

it('after eight admissions without a loss, a process assumes that it waits alone', () => {
  const left = contention()
  left.lost()
  for (let i = 0; i < 7; i++) left.admitted()
  expect(left.delayMs()).toBe(20)
  left.admitted()
  expect(left.delayMs()).toBe(0)
})
