import { expect, it } from 'vitest'
import { denialWord, LastDenials, mergeDenials } from '../../src/admin/last-denials.ts'

it('returns when a key was last denied, by limiter and dimension', () => {
  const denials = new LastDenials()
  denials.add('api', '', 'ann', 1000.4)
  denials.add('login', 'user', 'ann', 2000)
  denials.add('api', '', 'ann', 3000)
  expect(denials.of(denialWord('ann'))).toEqual({ 'api/': 3000, 'login/user': 2000 })
  expect(denials.of(denialWord('bob'))).toEqual({})
})

it('forgets the keys that were denied longest ago', () => {
  const denials = new LastDenials()
  for (let i = 0; i < 4096; i++) denials.add('api', '', `k${i}`, i)
  denials.add('api', '', 'k0', 5000)
  denials.add('api', '', 'one more', 5001)
  expect(denials.of(denialWord('k1'))).toEqual({})
  expect(denials.of(denialWord('k0'))).toEqual({ 'api/': 5000 })
  expect(denials.of(denialWord('k2'))).toEqual({ 'api/': 2 })
})

it('takes the latest time of several processes', () => {
  const latest = mergeDenials([{ 'api/': 5, 'login/user': 1 }, {}, { 'api/': 3, 'login/user': 2 }])
  expect(Object.fromEntries(latest)).toEqual({ 'api/': 5, 'login/user': 2 })
})
