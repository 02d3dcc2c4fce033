import { describe, expect, it } from 'vitest'
import { after, asError } from '../../src/http/maybe-async.ts'

// biome-ignore lint/suspicious/noThenProperty: a thenable of another library
const thenable: PromiseLike<number> = { then: (...then) => Promise.resolve(7).then(...then) }

describe('after', () => {
  it.each([7, undefined, null, '', Object.fromEntries([['then', 'no function']])])(
    'continues immediately with %o',
    (value) => {
      expect(after(value, (there) => [there])).toEqual([value])
    },
  )

  it.each([
    ['a promise', Promise.resolve(7)],
    ['another thenable', thenable],
  ])('continues with the result of %s', async (_, value) => {
    const gone = after(value, (there) => there + 1)
    expect(typeof gone).toBe('object')
    expect(await gone).toBe(8)
  })
})

describe('asError', () => {
  const error = new Error('thrown')
  it.each<[string, unknown, unknown]>([
    ['an error', error, error],
    ['nothing', undefined, { cause: undefined }],
    ['a word', 'route', { cause: 'route', message: 'thrown: route' }],
  ])('returns an error for %s', (_, thrown, expected) => {
    const reason = asError(thrown)
    expect(reason).toBeInstanceOf(Error)
    expect(reason).toMatchObject(expected as object)
  })
})
