import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseDiff } from '../src/changed-lines.js'
import { compare, countsOf, recordOf } from '../src/ratchet.js'
import { risesOf } from '../src/report.js'

/** @param {string} path @param {number} line */
const finding = (path, line) => ({
  path,
  line,
  column: 1,
  rule: 'told',
  excerpt: 'is told',
  instead: '"gets"',
})

test('counts and the record are sorted, and have rules without findings', () => {
  const counts = countsOf(['told', 'asked'], [{ rule: 'told' }, { rule: 'told' }])
  assert.equal(JSON.stringify(counts), '{"asked":0,"told":2}')
  assert.deepEqual(JSON.parse(recordOf(counts)), { total: 2, rules: counts })
})

test('rises, falls, new rules and removed rules are told apart', () => {
  assert.deepEqual(compare({ a: 1, b: 1, c: 1, gone: 1 }, { a: 1, b: 2, c: 0, fresh: 5 }), {
    risen: [{ rule: 'b', before: 1, now: 2 }],
    fallen: [{ rule: 'c', before: 1, now: 0 }],
    added: ['fresh'],
    removed: ['gone'],
  })
})

test('a report of a rise shows only changed lines if they explain it', () => {
  const findings = [finding('old.md', 1), finding('new.md', 7)]
  const report = risesOf([{ rule: 'told', before: 1, now: 2 }], findings, (path) => path === 'new.md')
  assert.equal(report, 'new.md:7:1  told  is told → "gets"\n\ntold: 1 → 2')
})

test('a report of a rise shows changed lines first, and 30 lines at most', () => {
  const findings = Array.from({ length: 40 }, (_, i) => finding('a.md', i + 1))
  const report = risesOf([{ rule: 'told', before: 1, now: 40 }], findings, (_, line) => line === 33).split(
    '\n',
  )
  assert.match(report[0] ?? '', /^a\.md:33:/)
  assert.equal(report[30], '... and 10 more findings')
})

test('the added lines of a diff are found by file', () => {
  const diff = [
    'diff --git a b.md a b.md',
    '--- a b.md',
    '+++ a b.md\t',
    '@@ -1 +1,2 @@',
    '-x',
    '+y',
    '+z',
    '@@ -9,2 +9,0 @@',
    '--- c.md',
    '+++ c.md',
    '@@ -3,0 +4 @@ f()',
  ].join('\n')
  assert.deepEqual(
    [...parseDiff(diff)],
    [
      ['a b.md', new Set([1, 2])],
      ['c.md', new Set([4])],
    ],
  )
})
