// slidegate init: writes a starter configuration.

import { chmodSync, existsSync, writeFileSync } from 'node:fs'
import { createInterface } from 'node:readline/promises'
import { type Command, Option } from 'commander'
import { messageOf, UsageError } from '../../../replay/src/errors.ts'
import { printable } from '../../../replay/src/text.ts'
import { type OutputFlags, print, withOutputOptions } from '../client/command.ts'
import { isRedisUrl, withoutCredentials } from '../config/redis-url.ts'

const KINDS = {
  api: {
    what: 'requests per key, such as an API key or a user',
    limit: '100/1m',
    example: 'user:42',
  },
  login: {
    what: 'attempts per user and per address',
    limit: '5/15m',
    example: 'user=ann address=203.0.113.7',
  },
  llm: { what: 'language model tokens', limit: '40000/1m', example: 'user:42 --cost 1200' },
} as const

type Kind = keyof typeof KINDS

interface InitFlags extends OutputFlags {
  readonly kind?: Kind
  readonly store?: string
  readonly limit?: string
  readonly force?: boolean
}

interface Answers {
  readonly kind: Kind
  /** `memory`, or a Redis URL. */
  readonly store: string
  readonly limit: string
}

export function addInitCommand(program: Command): void {
  const command = program
    .command('init')
    .description('write a starter configuration; on a terminal, prompt for missing options')
    .argument('[file]', 'the file to write', 'slidegate.yaml')
    .addOption(new Option('--kind <kind>', 'what to protect (default: api)').choices(Object.keys(KINDS)))
    .option('--store <store>', 'memory, or a Redis URL such as redis://127.0.0.1:6379 (default: memory)')
    .option('--limit <limit>', 'limit for each key, such as 100/1m (default: depends on --kind)')
    .option('--force', 'overwrite the file')
  withOutputOptions(command).action(async (file: string, flags: InitFlags) => {
    const { parseLimit } = await import('../../../replay/src/limit-option.ts')
    const { loadText } = await import('../config/load.ts')
    if (flags.force !== true && existsSync(file)) throw existing(file)
    const check = {
      kind: (text: string) => kindIn(text),
      store: (text: string) => storeIn(text),
      limit: (text: string) => {
        if (text.includes('='))
          throw new UsageError(`invalid --limit "${printable(text)}"; use a value such as 100/1m`)
        parseLimit(text)
        return text
      },
    }
    const { kind, store, limit } = await answersOf(flags, check)
    const text = configurationOf(kind, store, limit)
    // Validates the text before it is written.
    loadText(file, text)
    writeNew(file, text, flags.force === true, store.includes('@'))
    const quoted = /^[\w./-]+$/.test(file) ? file : `'${file.replaceAll("'", "'\\''")}'`
    const next = [`slidegate serve --config ${quoted}`, `slidegate consume ${kind} ${KINDS[kind].example}`]
    const shownStore = store === 'memory' ? 'memory' : 'redis'
    print(flags, { file, kind, store: shownStore, limit, next }, () => [
      `wrote ${printable(file)}: limiter ${kind}, ${limit}, in ${shownStore}`,
      'next, each in its own terminal:',
      ...next.map((each) => `  ${printable(each, 1000)}`),
    ])
  })
}

type Checks = { readonly [Name in keyof Answers]: (text: string) => Answers[Name] }

/** Reads the options. On a terminal, prompts for missing options; otherwise, uses defaults. */
async function answersOf(flags: InitFlags, check: Checks): Promise<Answers> {
  const given = {
    kind: flags.kind,
    store: flags.store === undefined ? undefined : check.store(flags.store),
    limit: flags.limit === undefined ? undefined : check.limit(flags.limit),
  }
  const isAsking = process.stdin.isTTY === true && process.stdout.isTTY === true
  const ask = isAsking ? questions() : undefined
  const answer = async <Name extends keyof Answers>(name: Name, question: string, ifNone: string) => {
    const before = given[name] as Answers[Name] | undefined
    if (before !== undefined) return before
    return ask === undefined
      ? check[name](ifNone)
      : ask.until(`${question} [${ifNone}]: `, ifNone, check[name])
  }
  try {
    const kinds = Object.entries(KINDS).map(([name, { what }]) => `  ${name.padEnd(5)}  ${what}\n`)
    const kind = await answer('kind', `What do you want to protect?\n${kinds.join('')}Kind`, 'api')
    const store = await answer('store', 'Store: memory, or a Redis URL', 'memory')
    const limit = await answer('limit', 'Limit for each key', KINDS[kind].limit)
    return { kind, store, limit }
  } finally {
    ask?.close()
  }
}

/** Prompts on the terminal. Ctrl-C and Ctrl-D cancel the prompt. */
function questions() {
  const terminal = createInterface({ input: process.stdin, output: process.stdout })
  const closed = new AbortController()
  terminal.once('close', () => closed.abort())
  return {
    /** Repeats the question until the answer is valid. */
    async until<Value>(question: string, ifNone: string, check: (text: string) => Value): Promise<Value> {
      for (;;) {
        const text = await terminal.question(question, { signal: closed.signal }).catch(() => {
          throw new Error('stopped; nothing was written')
        })
        try {
          return check(text.trim() || ifNone)
        } catch (error) {
          if (!(error instanceof UsageError)) throw error
          process.stdout.write(`${messageOf(error)}\n`)
        }
      }
    },
    close: () => terminal.close(),
  }
}

function kindIn(text: string): Kind {
  if (Object.hasOwn(KINDS, text)) return text as Kind
  throw new UsageError(
    `invalid --kind "${printable(text)}"; it must be one of ${Object.keys(KINDS).join(', ')}`,
  )
}

function storeIn(text: string): string {
  // Rejects `$`, because it starts an environment variable in a configuration.
  if (text === 'memory' || (isRedisUrl(text) && !text.includes('$'))) return text
  const shown = printable(withoutCredentials(text))
  throw new UsageError(
    `invalid --store "${shown}"; it must be memory, or a URL such as redis://user:password@127.0.0.1:6379`,
  )
}

function existing(file: string): UsageError {
  return new UsageError(
    `${printable(file, 200)} already exists; name another file, or pass --force to overwrite it`,
  )
}

/** @param isSecret whether only this user may read the file */
function writeNew(file: string, text: string, isForced: boolean, isSecret: boolean): void {
  try {
    writeFileSync(file, text, { flag: isForced ? 'w' : 'wx', ...(isSecret && { mode: 0o600 }) })
    if (isSecret) chmodSync(file, 0o600)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') throw existing(file)
    throw new Error(`can't write ${printable(file, 200)}: ${messageOf(error)}`, { cause: error })
  }
}

function configurationOf(kind: Kind, store: string, limit: string): string {
  const [units = '', window = ''] = limit.split('/')
  const lines = [
    '# Written by slidegate init. Start the service with: slidegate serve --config <this file>.',
    '# Saved changes take effect within about a second, except changes to listen and store.',
    '# docs/configuration.md describes every field.',
    '',
    'listen:',
    "  # Other machines can't connect. Before you change that, set auth.tokens.",
    '  http: 127.0.0.1:8080',
    '',
    ...storeLines(store),
    '',
    'limiters:',
    ...limiterLines(kind, units, window).map((line) => `  ${line}`),
  ]
  return `${lines.join('\n')}\n`
}

function storeLines(store: string): string[] {
  if (store === 'memory') {
    return [
      '# Each process counts separately, and a restart resets the counts.',
      '# To share limits between processes, use redis: { url: redis://... }',
      'store:',
      '  memory: {}',
    ]
  }
  return [
    '# All processes share the limits. Check this Redis with: slidegate doctor --config <this file>.',
    'store:',
    '  redis:',
    `    url: ${JSON.stringify(store)}`,
  ]
}

function limiterLines(kind: Kind, units: string, window: string): string[] {
  const limit = (count: string) => `{ kind: slidingWindow, limit: ${count}, window: ${window} }`
  switch (kind) {
    case 'api':
      return [
        `# Each key gets ${units} requests in any period of ${window}.`,
        '# POST /v1/consume with {"limiter":"api","key":"user:42"}',
        'api:',
        '  limits:',
        `    - ${limit(units)}`,
        '  # If the store is down: throw (an error), deny, allow, or local (limits within each process).',
        '  onStoreError: local',
      ]
    case 'login':
      return [
        '# Counts each attempt for two keys: the user and the address.',
        '# POST /v1/consume with {"limiter":"login","key":{"user":"ann","address":"203.0.113.7"}}',
        'login:',
        '  dimensions:',
        `    user: [${limit(units)}]`,
        '    # Ten times as many, because users can share an address.',
        `    address: [${limit(`${10 * Number(units)}`)}]`,
        '  # Bans a key after 20 denials within an hour, for longer each time.',
        '  ban: { after: 20, within: 1h, for: [5m, 1h, 1d] }',
      ]
    case 'llm':
      return [
        `# Each key gets ${units} tokens in any period of ${window}.`,
        '# Before calling the model, POST /v1/reserve with an estimate.',
        '# After the call, POST /v1/settle with the actual count.',
        'llm:',
        '  limits:',
        `    - ${limit(units)}`,
        "  # An estimate that isn't settled within this time stays charged.",
        '  reservationTtl: 10m',
        '  # If the store is down, denials are better than unlimited bills.',
        '  onStoreError: deny',
      ]
  }
}
