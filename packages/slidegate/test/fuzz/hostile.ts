import { createHash } from 'node:crypto'
import fc from 'fast-check'
import { anyCharacter } from '../support/characters.ts'

/**
 * A value that is created only when it is passed.
 * Otherwise, values that throw when they are read would fail while they are generated.
 */
export class Given {
  readonly make: () => unknown
  readonly #words: () => string

  constructor(make: () => unknown, words: () => string) {
    this.make = make
    this.#words = words
  }

  /** The text of this value in reports of a failure. */
  [fc.toStringMethod](): string {
    return this.#words()
  }
}

/** Wraps a harmless value. */
export function plain(value: unknown): Given {
  return new Given(
    () => value,
    () => fc.stringify(value),
  )
}

/** Thrown by a hostile argument. The library passes it on to the caller. */
export class Hostility extends Error {}

function strike(): never {
  throw new Hostility('thrown by an argument')
}

/** Names that all objects have, and names that look like values. */
const LOADED_NAMES = [
  ...[
    '__proto__',
    'constructor',
    'prototype',
    'toString',
    'valueOf',
    'hasOwnProperty',
    'then',
    'toJSON',
    'length',
  ],
  ...['limit', 'window', 'name', 'key', 'kind', 'undefined', 'null', 'NaN', 'true', '0', '-1', '1e3', '0x10'],
]

/** Separators and escapes in Redis keys, patterns, terminals, headers, JSON or paths. */
const SEPARATORS = [
  ...[
    ':',
    '{',
    '}',
    '{}',
    '*',
    '?',
    '[',
    ']',
    '\\',
    '/',
    '..',
    '%',
    '%00',
    '~',
    ',',
    ';',
    '=',
    '"',
    "'",
    '`',
    '|',
  ],
  ...[
    ' ',
    '\t',
    '\r\n',
    '\n',
    '\0',
    '\x1b[31m',
    '\x7f',
    '\u0085',
    '\u200b',
    '\u202e',
    '\u2028',
    '\ufeff',
    '\ufffd',
  ],
]

/** Characters that look like others, fold into others, or are invalid. */
const CONFUSABLES = [
  ...[
    'а',
    'е',
    'о',
    'Ｋ',
    'ｋ',
    'K',
    'ı',
    'İ',
    'ß',
    'ﬁ',
    'é',
    'é',
    'Å',
    'Å',
    '١',
    '１',
    '²',
    '。',
    '．',
    '：',
    '［',
  ],
  ...['\ud800', '\udfff', '\udc00\ud800', '💥', '👩‍👩‍👧', '\u0301'],
]

const NUMBERS = [
  ...[
    0,
    -0,
    1,
    -1,
    2,
    10,
    0.1,
    0.5,
    1.5,
    99.99,
    1e-7,
    2 ** 16,
    2 ** 20,
    2 ** 24,
    2 ** 31 - 1,
    2 ** 31,
    2 ** 32,
  ],
  ...[
    2 ** 40,
    2 ** 40 + 1,
    2 ** 46,
    2 ** 46 + 1,
    2 ** 47,
    2 ** 50,
    2 ** 53 - 1,
    2 ** 53,
    2 ** 63,
    1e21,
    1e300,
  ],
  ...[31_622_400_000, 31_622_400_001, 9, 10_000, 10_001, 65_536, Number.MIN_VALUE, Number.MAX_VALUE],
  ...[Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, Number.NaN],
]

/** Boundary numbers and their neighbors. */
export const numbers: fc.Arbitrary<number> = fc.oneof(
  fc.constantFrom(...NUMBERS),
  fc.tuple(fc.constantFrom(...NUMBERS), fc.constantFrom(-1, 1, 0.5)).map(([number, more]) => number + more),
  fc.integer(),
  fc.double(),
)

const piece = fc.oneof(
  fc.constantFrom(...SEPARATORS),
  fc.constantFrom(...CONFUSABLES),
  fc.constantFrom(...LOADED_NAMES),
  fc.string({ unit: anyCharacter, maxLength: 4 }),
)

/** Any text: mostly short, sometimes with a length at a boundary. */
export const texts: fc.Arbitrary<string> = fc.oneof(
  { weight: 6, arbitrary: fc.array(piece, { maxLength: 6 }).map((pieces) => pieces.join('')) },
  { weight: 3, arbitrary: fc.string({ maxLength: 20 }) },
  { weight: 2, arbitrary: fc.string({ unit: 'grapheme', maxLength: 20 }) },
  {
    weight: 1,
    arbitrary: fc
      .tuple(
        fc.constantFrom('x', 'é', '\0', ':', ' ', '0', '💥'),
        fc.constantFrom(64, 65, 127, 128, 129, 256, 8192, 65_535, 65_536, 65_537),
      )
      .map(([unit, length]) => unit.repeat(length)),
  },
)

type Change = (text: string, at: number, other: string) => string

const CHANGES: readonly Change[] = [
  (text, at) => text.slice(0, at),
  (text, at) => text.slice(at),
  (text, at) => text.slice(0, at) + text.slice(at + 1),
  (text, at, other) => text.slice(0, at) + other + text.slice(at),
  (text, at, other) => text.slice(0, at) + other + text.slice(at + 1),
  (text, at) => text.slice(0, at) + text.charAt(at).repeat(3) + text.slice(at + 1),
  (text, at) => text + text.slice(at),
  (text, at, other) => other.slice(0, at) + text.slice(at),
  (text, at) => text.slice(0, at) + text.slice(at).toUpperCase(),
  (text, at) => text.slice(0, at) + text.slice(at).toLowerCase(),
  (text, at) => text.slice(at) + text.slice(0, at),
  (text, at) =>
    text.slice(0, at) + String.fromCharCode(text.charCodeAt(at) ^ (1 << (at % 8)) || 1) + text.slice(at + 1),
  (text) => text.normalize('NFKC'),
  (text) => text.normalize('NFD'),
  (text) => encodeURIComponent(text.toWellFormed()),
  (text) => `~${createHash('sha256').update(text).digest('base64url')}`,
]

const changes = fc.array(fc.tuple(fc.constantFrom(...CHANGES), fc.nat(), piece), { maxLength: 4 })

/** Generates valid text with small changes: cut, doubled, spliced, flipped or folded. Sometimes it is unchanged. */
export function mutated(valid: fc.Arbitrary<string>): fc.Arbitrary<string> {
  return fc
    .tuple(valid, changes, fc.array(valid, { maxLength: 1 }))
    .map(([text, all, [other]]) =>
      all.reduce(
        (now, [change, at, inserted]) => change(now, at % (now.length + 1), other ?? inserted),
        text,
      ),
    )
}

/** Values whose properties throw, change, are circular, or lie about their type. Each use creates a new value. */
const TRAPS: readonly (() => unknown)[] = [
  () => {
    const cyclic: Record<string, unknown> = { limit: 1 }
    cyclic.self = cyclic
    return cyclic
  },
  () => {
    const { proxy, revoke } = Proxy.revocable({}, {})
    revoke()
    return proxy
  },
  () => new Proxy({}, { get: strike, has: strike, ownKeys: strike, getPrototypeOf: strike }),
  () => new Proxy([], { get: strike }),
  () => {
    let calls = 0
    return new Proxy({}, { get: (_, name) => (name === 'then' ? undefined : ++calls) })
  },
  () => ({ toString: strike, valueOf: strike, toJSON: strike, [Symbol.toPrimitive]: strike }),
  () => ({ toString: () => 'key', valueOf: () => 1 }),
  () => Object.defineProperty([], '0', { get: strike, enumerable: true }),
  () => Object.create(null),
  () => JSON.parse('{"__proto__":{"polluted":true},"constructor":{"prototype":{"polluted":true}}}'),
  () => new Array(1_000_000),
  () => Symbol('s'.repeat(100_000)),
  () => Symbol.iterator,
  () => LARGE,
  () => -1n,
  () => new String('key'),
  () => new Number(1),
  () => new Boolean(false),
  () => new Date(Number.NaN),
  () => new Map([['limit', 1]]),
  () => new Set([1]),
  () => new Uint8Array(8),
  () => /x/g,
  () => () => 1,
  () => async () => 1,
  () => class Limit {},
  () => Promise.resolve(1),
  () => new Error('x'.repeat(100_000)),
  () => globalThis,
]

const LARGE = 10n ** 5000n

/** Any value at all. */
export const hostile: fc.Arbitrary<Given> = fc.oneof(
  { weight: 3, arbitrary: numbers.map(plain) },
  { weight: 3, arbitrary: texts.map(plain) },
  {
    weight: 2,
    arbitrary: fc.nat(TRAPS.length - 1).map((i) => new Given(TRAPS[i]!, () => `TRAPS[${i}]: ${TRAPS[i]}`)),
  },
  { weight: 1, arbitrary: fc.constantFrom(undefined, null, true, false, '', [], {}, 1n).map(plain) },
  {
    weight: 1,
    arbitrary: fc
      .anything({ withBigInt: true, withDate: true, withMap: true, withNullPrototype: true, maxDepth: 2 })
      .map(plain),
  },
)

/** Objects that look valid but may not be. */
const GUISES: readonly ((valid: object) => unknown)[] = [
  (valid) => new Proxy(valid, {}),
  (valid) => Object.create(valid),
  (valid) => Object.assign(Object.create(null), valid),
  (valid) => ({ ...valid, ...JSON.parse('{"__proto__":{"polluted":true}}') }),
  (valid) => Object.freeze({ ...valid }),
  (valid) => withGetters(valid, (value) => value),
  (valid) => withGetters(valid, (value, calls) => (calls === 0 ? value : undefined)),
  (valid) => withGetters(valid, (value, calls) => (calls === 0 ? value : Number.NaN)),
  (valid) => withGetters(valid, strike),
]

/** Copies an object. Its properties are computed at each access. */
function withGetters(valid: object, read: (value: unknown, calls: number) => unknown): object {
  const changing = {}
  for (const [name, value] of Object.entries(valid)) {
    let calls = 0
    Object.defineProperty(changing, name, { enumerable: true, get: () => read(value, calls++) })
  }
  return changing
}

/**
 * Generates an object that is almost valid. One or two properties are wrong, or change between reads. Sometimes it is valid.
 *
 * @param names possible names of wrong properties
 */
export function nearly(valid: fc.Arbitrary<object>, names: readonly string[]): fc.Arbitrary<Given> {
  const changes = fc.array(fc.tuple(fc.constantFrom(...names), hostile), { minLength: 1, maxLength: 2 })
  return fc.oneof(
    { weight: 3, arbitrary: valid.map(plain) },
    { weight: 6, arbitrary: fc.tuple(valid, changes).map(([object, changes]) => changed(object, changes)) },
    {
      weight: 2,
      arbitrary: fc.tuple(valid, fc.nat(GUISES.length - 1)).map(
        ([object, i]) =>
          new Given(
            () => GUISES[i]!(object),
            () => `GUISES[${i}] of ${fc.stringify(object)}`,
          ),
      ),
    },
    { weight: 1, arbitrary: hostile },
  )
}

/** Returns a copy with other properties. */
function changed(object: object, changes: readonly (readonly [string, Given])[]): Given {
  return new Given(
    () => ({ ...object, ...Object.fromEntries(changes.map(([name, given]) => [name, given.make()])) }),
    () => `${fc.stringify(object)} with ${changes.map(([name, given]) => `${name}: ${fc.stringify(given)}`)}`,
  )
}
