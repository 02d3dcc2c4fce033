// Checks what a schema can't: files, listeners, tokens, rules and the store.

import { createHash } from 'node:crypto'
import { accessSync, constants, readFileSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { createSecureContext } from 'node:tls'
import { messageOf } from '../../../replay/src/errors.ts'
import { checkRules } from '../gateway/rules.ts'
import { addressOf, isLoopback } from '../service/listeners.ts'
import { openStore, storeConfigOf } from '../service/stores.ts'
import type { Path } from './reader.ts'
import { ADDRESS, type Config, type RuleConfig } from './schema.ts'
import { suggestion } from './suggestion.ts'

/** A configuration to check, and where to report problems. */
export interface Checked {
  readonly config: Config
  /** The base folder for relative file names. */
  readonly folder: string
  readonly environment: NodeJS.ProcessEnv
  /** Whether to read files that the configuration names. */
  readonly looksAtFiles: boolean
  /** Whether no problem has been found at this path or below it. If one has been found, further checks are skipped. */
  isSound(path: Path): boolean
  /** Reports a problem with a value. If `at` is `key`, the problem is the property's name. */
  complain(path: Path, message: string, at?: 'value' | 'key'): void
}

/** Checks forward auth, the store, listeners and tokens. */
export function checkService(checked: Checked): void {
  checkForwardAuth(checked)
  checkStore(checked)
  checkListeners(checked)
  checkTokens(checked)
}

function checkForwardAuth(checked: Checked): void {
  const { config, isSound, complain } = checked
  if (!isSound(['forwardAuth'])) return
  const { rules = [] } = config.forwardAuth ?? {}
  const isAny = ({ when = {} }: RuleConfig) => Object.keys(when).length === 0
  const last = rules.findIndex(isAny)
  for (const [i, { limiter, plan }] of rules.entries()) {
    const path = ['forwardAuth', 'rules', i]
    if (last >= 0 && i === last + 1)
      complain(
        path,
        'no request reaches this rule, because the previous rule has no `when` and therefore matches every request',
      )
    if (limiter === undefined) continue
    const known = Object.hasOwn(config.limiters, limiter) ? config.limiters[limiter] : undefined
    if (known === undefined) {
      complain(
        [...path, 'limiter'],
        `unknown limiter ${limiter}; ${suggestion(limiter, Object.keys(config.limiters))}`,
      )
    } else if (plan !== undefined && !plan.includes('{') && !Object.hasOwn(known.plans ?? {}, plan)) {
      complain(
        [...path, 'plan'],
        `unknown plan ${plan} for limiter ${limiter}; ${suggestion(plan, Object.keys(known.plans ?? {}))}`,
      )
    }
  }
  const sound = Object.entries(config.limiters).filter(([name]) => isSound(['limiters', name]))
  checkRules({ ...config, limiters: Object.fromEntries(sound) }, complain)
}

function checkStore(checked: Checked): void {
  const { config, folder, environment, isSound, complain } = checked
  const { store } = config
  if (!isSound(['store'])) return
  if (store !== undefined && (store.memory === undefined) === (store.redis === undefined)) {
    complain(['store'], 'set either memory or redis')
    return
  }
  const { servername: _, ...files } = store?.redis?.tls ?? {}
  if (areReadable(checked, ['store', 'redis', 'tls'], files) === undefined) return
  try {
    // Only checks the options. The store is closed before it connects.
    openStore(storeConfigOf(store, environment), folder).close()
  } catch (error) {
    if (store === undefined) complain([], `REDIS_URL: ${messageOf(error)}`)
    else complain(['store', 'redis', 'url'], messageOf(error))
  }
}

const MAX_PORT = 65_535

function checkListeners(checked: Checked): void {
  const { config, isSound, complain } = checked
  if (!isSound(['listen'])) return
  const { listen = {} } = config
  const beyond: string[] = []
  for (const [name, address] of Object.entries({ http: listen.http, grpc: listen.grpc })) {
    if (address === undefined || address === false) continue
    if (!new RegExp(ADDRESS).test(address)) {
      complain(
        ['listen', name],
        `${name} is ${JSON.stringify(address)}; it must be an address such as '127.0.0.1:8080'`,
      )
      continue
    }
    const { host, port } = addressOf(address)
    if (port > MAX_PORT) complain(['listen', name], `the port is ${port}; it must be at most ${MAX_PORT}`)
    if (!isLoopback(host)) beyond.push(name)
  }
  if (listen.http !== undefined && listen.http === listen.grpc && addressOf(listen.http).port !== 0)
    complain(['listen', 'grpc'], 'listen.http already uses this address')
  if (listen.tls !== undefined) checkCertificate(checked, listen.tls)
  if (beyond.length === 0 || !isSound(['auth'])) return
  const { anonymous, tokens = [] } = config.auth ?? {}
  if (anonymous === undefined && tokens.length === 0)
    complain(
      ['listen', beyond[0]!],
      'other machines can connect here, but authentication is not configured; set auth.tokens, or set auth.anonymous to a role',
    )
}

function checkCertificate(checked: Checked, tls: NonNullable<NonNullable<Config['listen']>['tls']>): void {
  const path = ['listen', 'tls']
  const { cert, key, clientCa: ca } = areReadable(checked, path, { ...tls }) ?? {}
  if (cert === undefined) return
  try {
    createSecureContext({ cert, key, ca })
  } catch (error) {
    checked.complain(path, `can't use the certificate: ${messageOf(error)}`)
  }
}

/** Returns the files' contents by field name. Undefined if a file can't be read, or if reading is turned off. */
function areReadable(
  { folder, looksAtFiles, complain }: Checked,
  path: Path,
  files: Readonly<Record<string, string | undefined>>,
): Record<string, Buffer> | undefined {
  if (!looksAtFiles && Object.keys(files).length > 0) return undefined
  const contents: Record<string, Buffer> = {}
  let isGood = true
  for (const [name, file] of Object.entries(files)) {
    try {
      contents[name] = readFileSync(resolve(folder, file!))
    } catch (error) {
      isGood = false
      complain([...path, name], `can't read the file: ${messageOf(error)}`)
    }
  }
  return isGood ? contents : undefined
}

/** Names that have a special meaning in the audit log. */
const RESERVED = ['anonymous', 'admin-link', 'configuration']

function checkTokens({ config, isSound, complain }: Checked): void {
  if (!isSound(['auth'])) return
  const names = new Set<string>(RESERVED)
  const secrets = new Set<string>()
  for (const [i, { name, token, sha256 }] of (config.auth?.tokens ?? []).entries()) {
    const path = ['auth', 'tokens', i]
    if (names.has(name))
      complain(
        [...path, 'name'],
        'this name is already used; choose another, so that the audit log is unambiguous',
      )
    names.add(name)
    if ((token === undefined) === (sha256 === undefined)) {
      complain(path, 'set either token or sha256')
      continue
    }
    if (token !== undefined && /[^!-~]/.test(token)) {
      complain(
        [...path, 'token'],
        "this secret can't be sent in a header; use printable ASCII characters without spaces",
      )
      continue
    }
    const digest = sha256 ?? createHash('sha256').update(token!).digest('hex')
    if (secrets.has(digest)) complain(path, 'another token already has this secret')
    secrets.add(digest)
  }
}

/** Checks the files and streams to which decisions and captured requests are written. */
export function checkCapture(checked: Checked): void {
  const { config, environment, isSound, complain } = checked
  const { capture, logging } = config
  if (isSound(['logging']) && logging?.decisionFile !== undefined)
    checkFile(checked, ['logging', 'decisionFile'], logging.decisionFile)
  if (!isSound(['capture']) || capture === undefined) return
  const { file, stream = false } = capture
  if ((file === undefined) === !stream) complain(['capture'], 'set either a file or `stream: true`')
  else if (file !== undefined) checkFile(checked, ['capture', 'file'], file)
  else if (isSound(['store']) && storeConfigOf(config.store, environment).redis === undefined)
    complain(['capture', 'stream'], 'the store is in memory; a stream needs store.redis or REDIS_URL')
}

function checkFile({ folder, looksAtFiles, complain }: Checked, path: Path, file: string): void {
  if (!looksAtFiles) return
  try {
    accessSync(dirname(resolve(folder, file)), constants.W_OK)
  } catch (error) {
    complain(path, `can't write the file: ${messageOf(error)}`)
  }
}
