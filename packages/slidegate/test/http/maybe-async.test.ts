import { describe, expect, it } from 'vitest'
import { after, settle } from '../../src/http/maybe-async.ts'

// biome-ignore lint/suspicious/noThenProperty: what others hand in as a promise
const thenable: PromiseLike<number> = { then: (...then) => Promise.resolve(7).then(...then) }

describe('after', () => {
  it.each([7, undefined, null, '', Object.fromEntries([['then', 'no function']])])(
    'goes on at once with %o',
    (value) => {
      expect(after(value, (there) => [there])).toEqual([value])
    },
  )

  it.each([
    ['a promise', Promise.resolve(7)],
    ['another that has a then', thenable],
  ])('goes on with what comes of %s', async (_, value) => {
    const gone = after(value, (there) => there + 1)
    expect(typeof gone).toBe('object')
    expect(await gone).toBe(8)
  })
})

describe('settle', () => {
  const unused = () => {
    throw new Error('called')
  }

  it('goes on at once', () => {
    const seen: unknown[] = []
    settle(
      () => 7,
      [],
      (value) => seen.push(value),
      unused,
    )
    expect(seen).toEqual([7])
  })

  it('goes on when it can', async () => {
    const seen: unknown[] = []
    settle(
      () => thenable,
      [],
      (value) => seen.push(value),
      unused,
    )
    expect(seen).toEqual([])
    await expect.poll(() => seen).toEqual([7])
  })

  const error = new Error('thrown')
  it.each<[string, unknown, unknown]>([
    ['an error', error, error],
    ['nothing', undefined, { cause: undefined }],
    ['a word', 'route', { cause: 'route', message: 'thrown: route' }],
  ])('hands on what is thrown, as an error: %s', async (_, thrown, expected) => {
    const seen: unknown[] = []
    const fail = (reason: Error) => seen.push(reason)
    settle(
      () => {
        throw thrown
      },
      [],
      unused,
      fail,
    )
    settle(() => Promise.reject(thrown), [], unused, fail)
    await expect.poll(() => seen.length).toBe(2)
    for (const reason of seen) {
      expect(reason).toBeInstanceOf(Error)
      expect(reason).toMatchObject(expected as object)
    }
  })

  it('leaves alone what going on throws', () => {
    const goOn = () => {
      throw error
    }
    expect(() => settle(() => 7, [], goOn, unused)).toThrow(error)
  })
})
