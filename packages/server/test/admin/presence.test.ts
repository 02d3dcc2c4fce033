import { describe, expect, it } from 'vitest'
import { Presence, type Process } from '../../src/admin/presence.ts'

function process(id: string, worker = 'only'): Process {
  return { id, process: `${id}/${worker}`, host: id, pid: 1, version: '1.0.0', startedAtMs: 0 }
}

/** Returns a presence with a clock. Heartbeats return each second unless Redis is down. */
function setUp() {
  let nowMs = 0
  const presence = new Presence(() => nowMs)
  const pass = (seconds: number, others: readonly Process[] = [], isRedisUp = true) => {
    for (let i = 0; i < seconds; i++) {
      nowMs += 1000
      if (!isRedisUp) continue
      presence.echoed()
      for (const other of others) presence.heard(other, 22)
    }
  }
  const gone = () => presence.gone().map(({ id, lastPerSecond }) => [id, lastPerSecond])
  const present = () => presence.present().map(({ process }) => process)
  return { presence, pass, gone, present }
}

describe('an instance that falls silent', () => {
  it('an instance counts as gone after some seconds, with its last rate, and is forgotten after 15 minutes', () => {
    const { presence, pass, gone, present } = setUp()
    const atMs = Date.now()
    presence.heard(process('a'), 22)
    pass(3)
    expect([present(), gone()]).toEqual([['a/only'], []])
    pass(1)
    expect([present(), gone()]).toEqual([[], [['a', 22]]])
    expect(presence.gone()[0]!.goneSinceMs - atMs).toBeLessThan(60_000)
    pass(15 * 60 - 4)
    expect(gone()).toEqual([['a', 22]])
    pass(1)
    expect(gone()).toEqual([])
  })

  it('a silent instance is back with its next heartbeat', () => {
    const { pass, gone, present } = setUp()
    pass(2, [process('a')])
    pass(10)
    pass(1, [process('a')])
    expect([present(), gone()]).toEqual([['a/only'], []])
  })

  it('an instance is not gone while Redis is down, or if it returns with Redis', () => {
    const { pass, gone, present } = setUp()
    pass(2, [process('a'), process('b')])
    pass(60, [], false)
    expect([present(), gone()]).toEqual([[], []])
    pass(3)
    expect(gone()).toEqual([])
    pass(1, [process('a')])
    expect([present(), gone()]).toEqual([['a/only'], [['b', 22]]])
  })

  it('an instance is not gone if it said goodbye, or if one of its workers is left', () => {
    const { presence, pass, gone } = setUp()
    pass(1, [process('a'), process('b', '1'), process('b', '2')])
    presence.left('a/only')
    pass(10, [process('b', '2'), process('b', '3')])
    expect(gone()).toEqual([])
    pass(10)
    // The rates of the workers that ended together.
    expect(gone()).toEqual([['b', 44]])
  })
})

it('tracks up to 256 processes, and forgets those that are silent to make room', () => {
  const { pass, gone, present } = setUp()
  pass(
    1,
    Array.from({ length: 300 }, (_, i) => process(`p${i}`)),
  )
  expect(present()).toHaveLength(256)
  pass(10)
  expect(gone()).toHaveLength(256)
  pass(1, [process('new')])
  expect(present()).toEqual(['new/only'])
  expect(gone()).toHaveLength(255)
})
