// biome-ignore-all lint/suspicious/noTemplateCurlyInString: that is how variables are written
import { describe, expect, it } from 'vitest'
import { readDocument } from '../../src/config/document.ts'
import { ConfigError } from '../../src/config/problem.ts'
import { cpuMsOf } from '../support/cpu-time.ts'
import { problemsIn } from './support.ts'

/** CPU milliseconds, far more than any of these documents needs. */
const LONG_MS = 20_000

const dataIn = (text: string, environment?: NodeJS.ProcessEnv) =>
  readDocument('file.yaml', text, environment).value
const wrongIn = (text: string, environment?: NodeJS.ProcessEnv) =>
  problemsIn(() => readDocument('file.yaml', text, environment)).map(
    ({ line, column, message }) => `${line}:${column} ${message}`,
  )

describe('a configuration file', () => {
  it.each([
    ['YAML', 'a: 1\nb: [x, "2"]\n', { a: 1, b: ['x', '2'] }],
    ['JSON', '{"a": 1, "b": ["x", "2"]}', { a: 1, b: ['x', '2'] }],
    ['JSON with tabs', '{\n\t"a": [\n\t\t1\n\t]\n}\n', { a: [1] }],
    ['a byte order mark', '\uFEFFa: 1', { a: 1 }],
    ['Windows line ends', 'a: 1\r\nb:\r\n  - 2\r\n', { a: 1, b: [2] }],
    ['words that are booleans in YAML 1.1', 'a: yes\nb: off\nno: 1', { a: 'yes', b: 'off', no: 1 }],
    [
      'the same words in a YAML 1.1 file',
      '%YAML 1.1\n---\na: yes\nb: 2001-01-01',
      { a: 'yes', b: '2001-01-01' },
    ],
    ['names kept as written', '1e3: a\n007: b\ntrue: c', { '1e3': 'a', '007': 'b', true: 'c' }],
    ['numbers of all kinds', 'a: 1e3\nb: 0x10\nc: .inf', { a: 1000, b: 16, c: Number.POSITIVE_INFINITY }],
    ['nothing', '', null],
    ['only a comment', '# nothing', null],
    ['anchors', 'a: &x {b: 1}\nc: *x', { a: { b: 1 }, c: { b: 1 } }],
    ['a redefined anchor', 'a: &x 1\nb: *x\nc: &x 2\nd: *x', { a: 1, b: 1, c: 2, d: 2 }],
    ['merged maps', 'a: &x {b: 1, c: 2}\nd: {<<: *x, c: 3}', { a: { b: 1, c: 2 }, d: { b: 1, c: 3 } }],
    [
      'several merged maps, where the first takes precedence',
      'a: &x {k: 1}\nb: &y {k: 2, l: 3}\nc: {<<: [*x, *y]}',
      { a: { k: 1 }, b: { k: 2, l: 3 }, c: { k: 1, l: 3 } },
    ],
  ])('accepts %s', (_, text, value) => {
    expect(dataIn(text)).toEqual(value)
  })

  it('accepts names of inherited properties without changing prototypes', () => {
    const value = dataIn('__proto__: {polluted: 1}\nconstructor: {prototype: {polluted: 1}}') as object
    expect(Object.keys(value)).toEqual(['__proto__', 'constructor'])
    expect(Object.getPrototypeOf(value)).toBe(Object.prototype)
    expect('polluted' in {}).toBe(false)
    const merged = dataIn('a: &x {__proto__: {polluted: 1}}\nb: {<<: *x}') as { b: object }
    expect(Object.getPrototypeOf(merged.b)).toBe(Object.prototype)
  })

  it('copies the value of each alias', () => {
    const { a, b } = dataIn('a: &x {c: 1}\nb: *x') as { a: object; b: object }
    expect(a).not.toBe(b)
  })

  it.each([
    ['a tab', 'a:\n\tb: 1', ['2:1 invalid YAML: Tabs are not allowed as indentation']],
    ['an unclosed list', 'a: [1, 2\nb: 3', [expect.stringMatching(/^2:1 invalid YAML: /)]],
    ['unclosed JSON', '{"limiters": {', [expect.stringMatching(/^1:15 invalid YAML: /)]],
    ['a duplicate name', 'a: 1\nb: 2\na: 3', ['3:1 "a" is defined twice']],
    ['a duplicate name in JSON', '{"a": 1, "a": 1}', ['1:10 "a" is defined twice']],
    ['a duplicate name with other quotes', 'a: 1\n"a": 2', ['2:1 "a" is defined twice']],
    ['a missing name', ': 1', ['1:1 a name must be plain text']],
    ['a list as a name', '? [a, b]\n: 1', ['1:3 a name must be plain text']],
    ['a second document', 'a: 1\n---\nb: 2', ['2:1 a second document starts here; only one is allowed']],
    ['an unknown tag', 'a: !secret x', ['1:4 invalid YAML: Unresolved tag: !secret']],
    ['bytes', 'a: !!binary aGk=', [expect.stringMatching(/^1:4 .*Unresolved tag/)]],
    ['an unknown alias', 'a: *x', ['1:4 unknown anchor &x; it must be defined before this alias']],
    ['an alias within itself', 'a: &x [*x]', ['1:8 *x contains itself']],
    ['a merge of a number', 'a: {<<: 1}', ['1:9 the value of << must be a map or a list of maps']],
  ])('rejects %s', (_, text, problems) => {
    expect(wrongIn(text)).toEqual(problems)
  })

  it('reports all problems', () => {
    expect(wrongIn('a: *x\nb: 1\nb: 2')).toHaveLength(2)
  })

  it.each([
    ['lists within lists', '['.repeat(100_000)],
    ['lists within lists, all closed', '['.repeat(5000) + ']'.repeat(5000)],
    ['maps within maps', '{a: '.repeat(50_000)],
    ['lists within lists on one line', '- '.repeat(100_000)],
    [
      'maps within maps by indentation',
      Array.from({ length: 500 }, (_, i) => `${' '.repeat(i)}a:\n`).join(''),
    ],
  ])('rejects values that are nested too deep: %s', (_, text) => {
    expect(wrongIn(text)).toEqual([expect.stringMatching(/values are nested deeper than 100 levels/)])
  })

  it('rejects exploding aliases quickly and with little memory', async () => {
    const levels = 'abcdefghij'.split('')
    const bomb = levels.map((name, i) => {
      const inner = i === 0 ? 'x' : `*${levels[i - 1]}`
      return `${name}: &${name} [${Array(10).fill(inner).join(', ')}]\n`
    })
    const cpuMs = await cpuMsOf(() => {
      expect(wrongIn(bomb.join(''))).toEqual([expect.stringMatching(/there are more than 500,000 values/)])
    })
    expect(cpuMs).toBeLessThan(LONG_MS)
  })

  it('reads many names in linear time', async () => {
    const text = Array.from({ length: 100_000 }, (_, i) => `name-${i}: 1\n`).join('')
    const cpuMs = await cpuMsOf(() => {
      expect(Object.keys(dataIn(text) as object)).toHaveLength(100_000)
    })
    expect(cpuMs).toBeLessThan(LONG_MS)
  })
})

describe('the place of a problem', () => {
  const text = 'a: &x { b: 1 }\nc:\n  - f\n  - *x\ng:\nh: { <<: *x, i: 2 }\n'
  const { problemAt } = readDocument('file.yaml', text)
  it.each([
    [[], '1:1', '1:1'],
    [['a'], '1:7', '1:1'],
    [['a', 'b'], '1:12', '1:9'],
    [['c', 1], '4:5', '4:5'],
    [['c', 1, 'b'], '1:12', '1:9'],
    [['c', 7], '3:3', '3:3'],
    [['g'], '5:3', '5:1'],
    [['g', 'missing'], '5:3', '5:3'],
    [['h', 'b'], '1:12', '1:9'],
    [['h', 'i'], '6:17', '6:14'],
    [['missing', 'too'], '1:1', '1:1'],
  ])('at %j is %s, and %s for its name', (path, value, key) => {
    const [ofValue, ofKey] = (['value', 'key'] as const).map((at) => problemAt(path, 'wrong', at))
    expect(ofValue).toMatchObject({ file: 'file.yaml', message: 'wrong' })
    expect(`${ofValue!.line}:${ofValue!.column}`).toBe(value)
    expect(`${ofKey!.line}:${ofKey!.column}`).toBe(key)
  })

  it('ignores a byte order mark, as editors do', () => {
    expect(readDocument('file.yaml', '\uFEFFa: 1').problemAt(['a'], '')).toMatchObject({ line: 1, column: 4 })
  })
})

describe('environment variables', () => {
  const environment = { NAME: 'value', EMPTY: '', LOADED: '$' + '{NAME} $$ $& $1' }

  it.each([
    ['a variable', '${NAME}', 'value'],
    ['a variable within text', 'x-${NAME}-y', 'x-value-y'],
    ['an unused default', '${NAME:-other}', 'value'],
    ['a default', '${MISSING:-other text}', 'other text'],
    ['an empty default', '${MISSING:-}', ''],
    ['a default for an empty variable', '${EMPTY:-other}', 'other'],
    ['an empty variable', '${EMPTY}', ''],
    ['a dollar', '$$', '$'],
    ['an escaped variable', '$${NAME}', '${NAME}'],
    ['a dollar sign alone', '$NAME $ 5$', '$NAME $ 5$'],
    ['a value that looks like a variable', '${LOADED}', '${NAME} $$ $& $1'],
  ])('provide values: %s', (_, text, value) => {
    expect(dataIn(`a: ${JSON.stringify(text)}`, environment)).toEqual({ a: value })
    expect(dataIn(`- &x ${JSON.stringify(text)}\n- *x`, environment)).toEqual([value, value])
  })

  it('stay as they are in names and without an environment', () => {
    expect(dataIn('"${NAME}": 1', environment)).toEqual({ '${NAME}': 1 })
    expect(dataIn('a: ${NAME} $$')).toEqual({ a: '${NAME} $$' })
  })

  it.each([
    [
      'a: ${MISSING}',
      "1:4 the environment variable MISSING isn't set; set it or write a default: ${MISSING:-default}",
    ],
    ['a: "${"', /^1:4 .*starts a variable/],
    ['a: "${}"', /^1:4 .*starts a variable/],
    ['a: "${NAME:-{}"', /^1:4 .*starts a variable/],
    ['a: "${not a name}"', /^1:4 .*starts a variable/],
    ['a: { b: ${NAME} }', '1:10 a variable inside braces or brackets must be quoted'],
  ])('cause an error: %s', (text, problem) => {
    expect(wrongIn(text, environment)).toEqual([
      problem instanceof RegExp ? expect.stringMatching(problem) : problem,
    ])
  })

  it('take linear time, even if many are unterminated', async () => {
    const cpuMs = await cpuMsOf(() => {
      expect(wrongIn(`a: "${'${'.repeat(1_000_000)}"`, {})).toHaveLength(1)
    })
    expect(cpuMs).toBeLessThan(LONG_MS)
  })

  it.each([40, 64])('stay out of messages that show only their first %i characters', (length) => {
    const secret = Array.from({ length: 100 }, (_, i) => String.fromCharCode(0x4e00 + i)).join('')
    const { problemAt } = readDocument('file.yaml', 'a: ${S}', { S: secret })
    const { message } = problemAt(['a'], `it is ${JSON.stringify(secret.slice(0, length))}...`)
    for (const character of secret) expect(message).not.toContain(character)
  })

  it('stay out of messages if they are long enough to be secrets', () => {
    const secret = 'correct horse "battery" staple'
    const { problemAt, variableAt } = readDocument('file.yaml', 'a: ${S}\nb: x${S}\nc: plain', { S: secret })
    expect([['a'], ['b'], ['c']].map(variableAt)).toEqual(['whole', 'part', undefined])
    for (const said of [secret, JSON.stringify(secret)]) {
      expect(problemAt(['a'], `it is ${said}`).message).not.toMatch(/horse|battery|staple/)
    }
  })
})

it('a ConfigError has the place of each problem', () => {
  expect(() => readDocument('some/file.yaml', 'a: 1\na: 2\na: 3')).toThrow(
    new ConfigError([
      { file: 'some/file.yaml', line: 2, column: 1, message: '"a" is defined twice' },
      { file: 'some/file.yaml', line: 3, column: 1, message: '"a" is defined twice' },
    ]),
  )
  expect(() => readDocument('some/file.yaml', 'a: 1\na: 2')).toThrow(
    'some/file.yaml:2:1: "a" is defined twice',
  )
})
