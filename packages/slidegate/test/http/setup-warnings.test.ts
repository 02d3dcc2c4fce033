import { randomUUID } from 'node:crypto'
import { expect, it } from 'vitest'
import { type Binding, createGuard, type GuardOptions } from '../../src/http/index.ts'
import { createLimiter, memoryStore, slidingWindow } from '../../src/index.ts'
import { warningsAbout } from '../support/warnings.ts'

interface Request {
  readonly forwarded?: string
}

const binding: Binding<[request: Request]> = {
  address: () => '10.0.0.5',
  peer: () => '10.0.0.5',
  header: (name, { forwarded }) => (name === 'x-forwarded-for' ? forwarded : undefined),
  signal: () => new AbortController().signal,
  canDrop: true,
}

const limits = [slidingWindow({ limit: 100_000, window: '1m' })]

function setUp(options: GuardOptions<[request: Request]>, own: Partial<Binding<[request: Request]>> = {}) {
  const name = randomUUID()
  return {
    name,
    warnings: warningsAbout(name),
    guard: createGuard({ name, limits, ...options }, { ...binding, ...own }),
  }
}

it('an address that is only looked up in a list causes the warning, too', async () => {
  const { warnings, guard } = setUp({ key: () => 'ann', allow: ['192.0.2.1'] })
  guard({ forwarded: '192.0.2.1' })
  expect(await warnings.codes()).toEqual(['SLIDEGATE_UNTRUSTED_PROXY'])
})

it("the warning names the framework's setting, and isn't emitted if that is set", async () => {
  const unset = setUp({}, { proxySetting: () => "app.set('trust proxy', 1)" })
  unset.guard({ forwarded: '192.0.2.1' })
  expect(await unset.warnings.codes()).toEqual(['SLIDEGATE_UNTRUSTED_PROXY'])
  expect(unset.warnings.all[0]!.message).toContain("Use app.set('trust proxy', 1) or address: { trust: n }")
  const set = setUp({}, { proxySetting: () => undefined })
  set.guard({ forwarded: '192.0.2.1' })
  expect(await set.warnings.codes()).toEqual([])
})

it('an unknown address is named, because all callers share it', async () => {
  const { warnings, guard } = setUp({}, { address: () => undefined })
  guard({ forwarded: '192.0.2.1' })
  await warnings.codes()
  expect(warnings.all[0]!.message).toContain('share the key unknown')
})

it('only the first 10,000 requests of a guard are checked', async () => {
  const { warnings, guard } = setUp({})
  for (let i = 0; i < 10_000; i++) guard({})
  guard({ forwarded: '192.0.2.1' })
  expect(await warnings.codes()).toEqual([])
})

it('two guards with limits of the same name and store charge a request twice', async () => {
  const name = randomUUID()
  const warnings = warningsAbout(name)
  const options = { name, limits, store: memoryStore() }
  const request = {}
  for (const guard of [createGuard(options, binding), createGuard(options, binding)]) guard(request)
  expect(await warnings.codes()).toEqual(['SLIDEGATE_CHARGED_TWICE'])
})

it('a request that was skipped once is charged once', async () => {
  const name = randomUUID()
  const warnings = warningsAbout(name)
  const limiter = createLimiter({ name, limits })
  const request = {}
  createGuard({ limiter, skip: () => true }, binding)(request)
  createGuard({ limiter }, binding)(request)
  expect(await warnings.codes()).toEqual([])
})
