// tier: system
import { readFileSync } from 'node:fs'
import fc from 'fast-check'
import { afterAll, expect, it } from 'vitest'
import { stringify } from 'yaml'
import { mutated, texts } from '../../../slidegate/test/fuzz/hostile.ts'
import { loadConfig } from '../../src/config/load.ts'
import { temporaryFolder } from '../support/cli.ts'
import { problemsIn } from './support.ts'

const folder = temporaryFolder()
afterAll(folder.remove)

const EXAMPLE = readFileSync(new URL('../../examples/slidegate.yaml', import.meta.url), 'utf8')
const ENVIRONMENT = { NUMBER: '5', WORD: 'slidingWindow', SECRET: 'a secret that must not leak' }
/** An upper bound for the length of messages. */
const LONGEST = 1000

const words = fc.constantFrom(
  ...['limiters', 'limits', 'dimensions', 'plans', 'overrides', 'keys', 'key', 'kind', 'limit', 'window'],
  ...[
    'name',
    'shadow',
    'ban',
    'listen',
    'http',
    'grpc',
    'tls',
    'store',
    'memory',
    'redis',
    'url',
    'forwardAuth',
  ],
  ...[
    'rules',
    'when',
    'limiter',
    'allow',
    'envoy',
    'files',
    'auth',
    'tokens',
    'anonymous',
    'caps',
    'logging',
    'api',
  ],
  ...[
    '__proto__',
    'constructor',
    'toString',
    '<<',
    '0',
    'slidingWindow',
    'tokenBucket',
    'concurrency',
    '1s',
    '1m',
  ],
)
const scalars = fc.oneof(
  words,
  texts,
  fc.constantFrom(null, true, false, 0, 1, -1, 1.5, 1e21, Number.NaN, Number.POSITIVE_INFINITY),
  fc.constantFrom('$' + '{NUMBER}', '$' + '{SECRET}', '$' + '{WORD}', '$' + '{', '$' + '{MISSING:-1}'),
)

/** Data shaped like a configuration. */
const likenesses = fc.letrec((tie) => ({
  value: fc.oneof({ maxDepth: 5, withCrossShrink: true }, scalars, tie('map'), tie('list')),
  map: fc.dictionary(words, tie('value'), { maxKeys: 5 }),
  list: fc.array(tie('value'), { maxLength: 4 }),
}))

/** Checks that the text is accepted, or that each problem has a valid place. */
function isHandled(text: string | Buffer): void {
  const file = folder.write('hostile.yaml', text)
  const problems = problemsIn(() => loadConfig(file, { environment: ENVIRONMENT }))
  const lines = readFileSync(file, 'utf8')
    .replace(/^\uFEFF/, '')
    .split('\n')
  for (const { file: name, line, column, message } of problems) {
    expect(name).toBe(file)
    expect(line).toBeGreaterThanOrEqual(1)
    expect(line).toBeLessThanOrEqual(lines.length)
    expect(column).toBeGreaterThanOrEqual(1)
    expect(column).toBeLessThanOrEqual(lines[line - 1]!.length + 1)
    expect(message).not.toBe('')
    expect(message.length).toBeLessThan(LONGEST)
    expect(message).not.toContain(ENVIRONMENT.SECRET)
  }
}

const RUNS = { numRuns: 200 }

it('a mutated example loads or reports its problems', () => {
  fc.assert(fc.property(mutated(fc.constant(EXAMPLE)), isHandled), RUNS)
})

it('an example with changed, repeated or moved lines loads or reports its problems', () => {
  const lines = EXAMPLE.split('\n')
  const changes = fc.array(fc.tuple(fc.nat(lines.length - 1), fc.nat(lines.length - 1), fc.option(scalars)), {
    minLength: 1,
    maxLength: 4,
  })
  fc.assert(
    fc.property(changes, (all) => {
      const changed = [...lines]
      for (const [at, from, value] of all) {
        if (value === null) changed.splice(at, 0, lines[from]!)
        else changed[at] = changed[at]!.replace(/: *[^:]*$/, () => `: ${value}`)
      }
      isHandled(changed.join('\n'))
    }),
    RUNS,
  )
})

it('random data shaped like a configuration loads or reports its problems', () => {
  const roots = fc.tuple(likenesses.map, fc.boolean())
  fc.assert(
    fc.property(roots, ([value, isJson]) => isHandled(isJson ? JSON.stringify(value) : stringify(value))),
    RUNS,
  )
})

it('random text and bytes load or report their problems', () => {
  fc.assert(fc.property(fc.oneof(texts, fc.uint8Array().map(Buffer.from)), isHandled), RUNS)
})
