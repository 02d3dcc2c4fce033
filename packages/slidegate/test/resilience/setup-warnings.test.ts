import { randomUUID } from 'node:crypto'
import { expect, it } from 'vitest'
import {
  createLimiter,
  failurePolicy,
  fixedWindow,
  type LimiterOptions,
  memoryStore,
  type Store,
  slidingWindow,
} from '../../src/index.ts'
import { warningsAbout } from '../support/warnings.ts'

const sharedStore = (): Store => ({ failurePolicy, apply: () => {}, close: () => {} })
const perMinute = (limit: number) => slidingWindow({ limit, window: '1m' })

function create(options: Partial<LimiterOptions>) {
  return createLimiter({ limits: [perMinute(10)], store: sharedStore(), ...options } as LimiterOptions)
}

it("onStoreError: 'local' without instances causes one warning per limiter", async () => {
  const [name, other] = [randomUUID(), randomUUID()]
  const warnings = [warningsAbout(name), warningsAbout(other)]
  for (const limiter of [name, name, other]) create({ name: limiter, onStoreError: 'local' })
  expect(await Promise.all(warnings.map(({ codes }) => codes()))).toEqual([
    ['SLIDEGATE_LOCAL_INSTANCES'],
    ['SLIDEGATE_LOCAL_INSTANCES'],
  ])
  expect(warnings[0]!.all[0]!.message).toMatch(
    /Set instances to the number of processes, or to 1 to allow that\./,
  )
})

it.each<Partial<LimiterOptions>>([
  { onStoreError: 'local', instances: 1 },
  { onStoreError: 'allow' },
  { onStoreError: 'local', store: memoryStore() },
  { onStoreError: 'local', warnings: false },
])('%o causes no warning', async (options) => {
  const name = randomUUID()
  const warnings = warningsAbout(name)
  create({ name, ...options })
  expect(await warnings.codes()).toEqual([])
})

it('a second limiter with the name and store of another, but other limits, causes a warning', async () => {
  const name = randomUUID()
  const warnings = warningsAbout(name)
  const store = sharedStore()
  create({ name, store })
  create({ name, store, limits: [perMinute(20)] })
  create({ name, store, limits: [perMinute(30)] })
  expect(await warnings.codes()).toEqual(['SLIDEGATE_SHARED_NAME'])
  expect(warnings.all[0]!.message).toMatch(/they count together\. Give each its own name/)
})

it.each<[string, Partial<LimiterOptions>]>([
  ['the same limits', {}],
  ['another store', { store: sharedStore(), limits: [perMinute(20)] }],
  ['another name', { name: 'other', limits: [perMinute(20)] }],
  ['limits that count separately', { limits: [fixedWindow({ limit: 20, window: '1m' })] }],
  ['limits by a function', { limits: () => [perMinute(20)] }],
  ['warnings: false', { warnings: false, limits: [perMinute(20)] }],
])('a second limiter with %s causes none', async (_, options) => {
  const name = randomUUID()
  const warnings = warningsAbout(name)
  const store = sharedStore()
  create({ name, store })
  create({ name, store, ...options })
  expect(await warnings.codes()).toEqual([])
})

it('a second limiter that replaces a closed one causes none', async () => {
  const name = randomUUID()
  const warnings = warningsAbout(name)
  const store = sharedStore()
  create({ name, store }).close()
  create({ name, store, limits: [perMinute(20)] })
  expect(await warnings.codes()).toEqual([])
})

it('dimensions with the same name have their own limits, which is compared by dimension', async () => {
  const name = randomUUID()
  const warnings = warningsAbout(name)
  const store = sharedStore()
  const by = (user: number, ip: number) =>
    createLimiter({ name, store, dimensions: { user: [perMinute(user)], ip: [perMinute(ip)] } })
  create({ name, store, limits: [perMinute(30)] })
  by(10, 20)
  expect(await warnings.codes()).toEqual([])
  by(10, 30)
  expect(await warnings.codes()).toEqual(['SLIDEGATE_SHARED_NAME'])
})
