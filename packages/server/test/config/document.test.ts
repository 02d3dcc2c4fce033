// biome-ignore-all lint/suspicious/noTemplateCurlyInString: that is how variables are written
import { describe, expect, it } from 'vitest'
import { readDocument } from '../../src/config/document.ts'
import { ConfigError } from '../../src/config/problem.ts'
import { cpuMsOf } from '../support/cpu-time.ts'
import { problemsIn } from './support.ts'

/** Of the CPU: far more than any of these takes. */
const LONG_MS = 20_000

const dataIn = (text: string, environment?: NodeJS.ProcessEnv) =>
  readDocument('file.yaml', text, environment).value
const wrongIn = (text: string, environment?: NodeJS.ProcessEnv) =>
  problemsIn(() => readDocument('file.yaml', text, environment)).map(
    ({ line, column, message }) => `${line}:${column} ${message}`,
  )

describe('a document', () => {
  it.each([
    ['YAML', 'a: 1\nb: [x, "2"]\n', { a: 1, b: ['x', '2'] }],
    ['JSON', '{"a": 1, "b": ["x", "2"]}', { a: 1, b: ['x', '2'] }],
    ['JSON with tabs', '{\n\t"a": [\n\t\t1\n\t]\n}\n', { a: [1] }],
    ['a byte order mark', '\uFEFFa: 1', { a: 1 }],
    ['ends of lines as on Windows', 'a: 1\r\nb:\r\n  - 2\r\n', { a: 1, b: [2] }],
    ['words that were booleans in YAML 1.1', 'a: yes\nb: off\nno: 1', { a: 'yes', b: 'off', no: 1 }],
    [
      'the same in a file that asks for YAML 1.1',
      '%YAML 1.1\n---\na: yes\nb: 2001-01-01',
      { a: 'yes', b: '2001-01-01' },
    ],
    ['names as they are written', '1e3: a\n007: b\ntrue: c', { '1e3': 'a', '007': 'b', true: 'c' }],
    ['numbers of all kinds', 'a: 1e3\nb: 0x10\nc: .inf', { a: 1000, b: 16, c: Number.POSITIVE_INFINITY }],
    ['nothing', '', null],
    ['nothing but a comment', '# nothing', null],
    ['anchors', 'a: &x {b: 1}\nc: *x', { a: { b: 1 }, c: { b: 1 } }],
    ['an anchor that is set anew', 'a: &x 1\nb: *x\nc: &x 2\nd: *x', { a: 1, b: 1, c: 2, d: 2 }],
    ['merged maps', 'a: &x {b: 1, c: 2}\nd: {<<: *x, c: 3}', { a: { b: 1, c: 2 }, d: { b: 1, c: 3 } }],
    [
      'several merged maps, of which the first counts',
      'a: &x {k: 1}\nb: &y {k: 2, l: 3}\nc: {<<: [*x, *y]}',
      { a: { k: 1 }, b: { k: 2, l: 3 }, c: { k: 1, l: 3 } },
    ],
  ])('may have %s', (_, text, value) => {
    expect(dataIn(text)).toEqual(value)
  })

  it('may have names that all objects have, and changes none of these', () => {
    const value = dataIn('__proto__: {polluted: 1}\nconstructor: {prototype: {polluted: 1}}') as object
    expect(Object.keys(value)).toEqual(['__proto__', 'constructor'])
    expect(Object.getPrototypeOf(value)).toBe(Object.prototype)
    expect('polluted' in {}).toBe(false)
    const merged = dataIn('a: &x {__proto__: {polluted: 1}}\nb: {<<: *x}') as { b: object }
    expect(Object.getPrototypeOf(merged.b)).toBe(Object.prototype)
  })

  it('is made anew for each alias: what is changed in one place is not in others', () => {
    const { a, b } = dataIn('a: &x {c: 1}\nb: *x') as { a: object; b: object }
    expect(a).not.toBe(b)
  })

  it.each([
    ['a tab', 'a:\n\tb: 1', ['2:1 this is not valid YAML: Tabs are not allowed as indentation']],
    ['what is not closed', 'a: [1, 2\nb: 3', [expect.stringMatching(/^2:1 this is not valid YAML: /)]],
    ['JSON that is not closed', '{"limiters": {', [expect.stringMatching(/^1:15 this is not valid YAML: /)]],
    ['a name twice', 'a: 1\nb: 2\na: 3', ['3:1 "a" is there twice']],
    ['a name twice in JSON', '{"a": 1, "a": 1}', ['1:10 "a" is there twice']],
    ['a name twice, spelt otherwise', 'a: 1\n"a": 2', ['2:1 "a" is there twice']],
    ['no name', ': 1', ['1:1 a name has to be a plain text']],
    ['a list for a name', '? [a, b]\n: 1', ['1:3 a name has to be a plain text']],
    ['a second document', 'a: 1\n---\nb: 2', ['2:1 this begins a second document: one is all there may be']],
    ['an unknown tag', 'a: !secret x', ['1:4 this is not valid YAML: Unresolved tag: !secret']],
    ['bytes', 'a: !!binary aGk=', [expect.stringMatching(/^1:4 .*Unresolved tag/)]],
    ['an alias of nothing', 'a: *x', ['1:4 there is no anchor &x before this alias']],
    ['an alias within itself', 'a: &x [*x]', ['1:8 *x stands within what it stands for']],
    ['a merge of what is no map', 'a: {<<: 1}', ['1:9 << takes a map, or a list of maps']],
  ])('must not have %s', (_, text, problems) => {
    expect(wrongIn(text)).toEqual(problems)
  })

  it('tells all that is wrong', () => {
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
  ])('nested too deep is refused: %s', (_, text) => {
    expect(wrongIn(text)).toEqual([expect.stringMatching(/values are nested deeper than 100 levels/)])
  })

  it('with aliases that explode is refused, before it takes memory or time', async () => {
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

  it('with very many names takes its time for each once', async () => {
    const text = Array.from({ length: 100_000 }, (_, i) => `name-${i}: 1\n`).join('')
    const cpuMs = await cpuMsOf(() => {
      expect(Object.keys(dataIn(text) as object)).toHaveLength(100_000)
    })
    expect(cpuMs).toBeLessThan(LONG_MS)
  })
})

describe('places', () => {
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
  ])('of %j are %s, and %s of the name', (path, value, key) => {
    const [ofValue, ofKey] = (['value', 'key'] as const).map((at) => problemAt(path, 'wrong', at))
    expect(ofValue).toMatchObject({ file: 'file.yaml', message: 'wrong' })
    expect(`${ofValue!.line}:${ofValue!.column}`).toBe(value)
    expect(`${ofKey!.line}:${ofKey!.column}`).toBe(key)
  })

  it('behind a byte order mark are those that editors show', () => {
    expect(readDocument('file.yaml', '\uFEFFa: 1').problemAt(['a'], '')).toMatchObject({ line: 1, column: 4 })
  })
})

describe('environment variables', () => {
  const environment = { NAME: 'value', EMPTY: '', LOADED: '$' + '{NAME} $$ $& $1' }

  it.each([
    ['a variable', '${NAME}', 'value'],
    ['one among other text', 'x-${NAME}-y', 'x-value-y'],
    ['a default that is not needed', '${NAME:-other}', 'value'],
    ['a default', '${MISSING:-other text}', 'other text'],
    ['a default of nothing', '${MISSING:-}', ''],
    ['a default in place of an empty variable', '${EMPTY:-other}', 'other'],
    ['an empty variable', '${EMPTY}', ''],
    ['a dollar', '$$', '$'],
    ['a dollar and braces', '$${NAME}', '${NAME}'],
    ['a dollar that begins nothing', '$NAME $ 5$', '$NAME $ 5$'],
    ['what a variable says, as it is', '${LOADED}', '${NAME} $$ $& $1'],
  ])('may stand in values: %s', (_, text, value) => {
    expect(dataIn(`a: ${JSON.stringify(text)}`, environment)).toEqual({ a: value })
    expect(dataIn(`- &x ${JSON.stringify(text)}\n- *x`, environment)).toEqual([value, value])
  })

  it('are left alone in names, and without an environment', () => {
    expect(dataIn('"${NAME}": 1', environment)).toEqual({ '${NAME}': 1 })
    expect(dataIn('a: ${NAME} $$')).toEqual({ a: '${NAME} $$' })
  })

  it.each([
    [
      'a: ${MISSING}',
      '1:4 the environment has no variable MISSING; set it, or give a default: ${MISSING:-default}',
    ],
    ['a: "${"', /^1:4 .*begins a variable/],
    ['a: "${}"', /^1:4 .*begins a variable/],
    ['a: "${NAME:-{}"', /^1:4 .*begins a variable/],
    ['a: "${not a name}"', /^1:4 .*begins a variable/],
    ['a: { b: ${NAME} }', '1:10 between braces or brackets a variable has to stand in quotes'],
  ])('are a problem where they cannot be: %s', (text, problem) => {
    expect(wrongIn(text, environment)).toEqual([
      problem instanceof RegExp ? expect.stringMatching(problem) : problem,
    ])
  })

  it('that are begun again and again, and never end, take their time once', async () => {
    const cpuMs = await cpuMsOf(() => {
      expect(wrongIn(`a: "${'${'.repeat(1_000_000)}"`, {})).toHaveLength(1)
    })
    expect(cpuMs).toBeLessThan(LONG_MS)
  })

  it.each([40, 64])('are in no message either where only %i characters of them are shown', (length) => {
    const secret = Array.from({ length: 100 }, (_, i) => String.fromCharCode(0x4e00 + i)).join('')
    const { problemAt } = readDocument('file.yaml', 'a: ${S}', { S: secret })
    const { message } = problemAt(['a'], `it is ${JSON.stringify(secret.slice(0, length))}...`)
    for (const character of secret) expect(message).not.toContain(character)
  })

  it('whose values are long enough to be secrets are in no message', () => {
    const secret = 'correct horse "battery" staple'
    const { problemAt, variableAt } = readDocument('file.yaml', 'a: ${S}\nb: x${S}\nc: plain', { S: secret })
    expect([['a'], ['b'], ['c']].map(variableAt)).toEqual(['whole', 'part', undefined])
    for (const said of [secret, JSON.stringify(secret)]) {
      expect(problemAt(['a'], `it is ${said}`).message).not.toMatch(/horse|battery|staple/)
    }
  })
})

it('what is wrong is an error that tells where', () => {
  expect(() => readDocument('some/file.yaml', 'a: 1\na: 2\na: 3')).toThrow(
    new ConfigError([
      { file: 'some/file.yaml', line: 2, column: 1, message: '"a" is there twice' },
      { file: 'some/file.yaml', line: 3, column: 1, message: '"a" is there twice' },
    ]),
  )
  expect(() => readDocument('some/file.yaml', 'a: 1\na: 2')).toThrow('some/file.yaml:2:1: "a" is there twice')
})
