import assert from 'node:assert/strict'
import { test } from 'node:test'
import { PATTERNS } from '../patterns.js'
import { matchesIn } from '../src/check.js'

/** @param {string} text @param {import('../src/markdown.js').Kind} kind */
const rulesIn = (text, kind) => matchesIn([{ start: 0, text, kind }], text).map(({ rule }) => rule)

for (const { id, kinds: [kind = 'text'] = [], bad, good } of PATTERNS) {
  test(`${id} matches its bad example and not its good one`, () => {
    assert.ok(rulesIn(bad, kind).includes(id), bad)
    assert.ok(!rulesIn(good, kind).includes(id), good)
  })
}

test('patterns are sorted by id, and no id is used twice', () => {
  const ids = PATTERNS.map(({ id }) => id)
  assert.deepEqual(ids, [...new Set(ids)].sort())
})

test('no good example breaks another rule', () => {
  const broken = PATTERNS.filter(({ kinds, good }) => rulesIn(good, kinds?.[0] ?? 'text').length > 0)
  assert.deepEqual(
    broken.map(({ id }) => id),
    [],
  )
})
