import assert from 'node:assert/strict'
import { test } from 'node:test'
import { findingsIn } from '../src/findings.js'

/** @param {string} path @param {string} text @returns {string[]} such as `2:5 told` */
const placesIn = (path, text) =>
  findingsIn(path, text).map(({ line, column, rule }) => `${line}:${column} ${rule}`)

/** @type {[title: string, path: string, text: string, places: string[]][]} */
const CASES = [
  ['an empty file has no findings', 'a.md', '', []],
  ['a paragraph is read across its lines', 'a.md', 'It is\nnone of these.', ['1:4 none']],
  ['Windows line ends do not move positions', 'a.md', '# One\r\n\r\nTwo\r\nis told.\r\n', ['4:4 told']],
  ['columns count UTF-16 units, as in editors', 'a.md', '😀 is told.', ['1:7 told']],
  ['code is skipped', 'a.md', '`told` and\n\n```sh\ntold\n```\n\n    told\n', []],
  [
    'link targets are skipped, link texts are not',
    'a.md',
    '[told](told.md "told") <https://told.me>',
    ['1:2 told'],
  ],
  [
    'table cells are read separately',
    'a.md',
    '| a | b |\n|---|---|\n| is `x` | who is told |',
    ['3:12 who-start', '3:19 told'],
  ],
  ['headings may start with "What"', 'a.md', '# What it does\n\n| What it is |\n|---|\n| x |\n', []],
  [
    'comments and docstrings are read',
    'a.ts',
    '/**\n * Is told.\n */\nlet a = 1 // is told',
    ['2:7 told', '4:17 told'],
  ],
  [
    'line comments on adjacent lines are one text',
    'a.ts',
    '// It is\n// none of these.\nf() // It is\n// none',
    ['1:7 none'],
  ],
  [
    'tags, types and links of docstrings are skipped',
    'a.js',
    '/**\n * @param {told} told the {@link told}\n */',
    [],
  ],
  [
    'a tag starts a new text',
    'a.js',
    '/**\n * A text\n * @returns what is told\n */',
    ['3:13 what-start', '3:21 told'],
  ],
  [
    'messages of three or more words are read',
    'a.ts',
    "f('who told them', 'told')",
    ['1:4 who-start', '1:8 told'],
  ],
  ['expressions in templates are code', 'a.ts', `f(\`it is \${told} that is told\`)`, ['1:26 told']],
  ['joined strings are one message', 'a.ts', "f('it is ' +\n  'none of ' + these)", ['1:7 none']],
  ['texts in JSX are read', 'a.tsx', 'const a = <p>It is <b>{x}</b> that is told</p>', ['1:39 told']],
  ['module names are skipped', 'a.ts', "import a from 'who told a'", []],
  [
    'only titles and comments of tests are read',
    'a.test.ts',
    "it('is told', () => f('that told us'))",
    ['1:5 title', '1:8 told'],
  ],
  ['titles of `each` and `skip` are read', 'test/a.ts', "test.skip.each([1])('x is told', f)", ['1:27 told']],
  [
    'Lua comments and strings are read',
    'a.lua',
    "-- is told\nlocal a = 'who told them -- a'",
    ['1:7 told', '2:12 who-start', '2:16 told'],
  ],
  ['YAML comments are read', 'a.yaml', "a: b#told # it's told\n", ['1:18 told']],
]

for (const [title, path, text, places] of CASES)
  test(title, () => assert.deepEqual(placesIn(path, text), places))

test('a file with a syntax error throws an error with its position', () => {
  assert.throws(() => placesIn('a.ts', 'let ='), /\(1:5\)/)
})

test('only the first sentence of a docstring must be short', () => {
  const long =
    'One two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen'
  assert.deepEqual(placesIn('a.ts', `/** A short one. ${long} */`), [])
  assert.deepEqual(placesIn('a.ts', `/** ${long} */`), ['1:5 long-opening'])
  assert.deepEqual(placesIn('a.ts', `// ${long}`), [])
})
