// START HERE: loads a configuration file, or lists all its problems.

import { dirname, resolve } from 'node:path'
import { stringify } from 'yaml'
import { type Domains, readDomains } from '../envoy/domains.ts'
import { isObject } from '../is-object.ts'
import { type Checked, checkCapture, checkService } from './checks.ts'
import { readDocument, readText, type SourceDocument } from './document.ts'
import { checkLimiters } from './limiter-checks.ts'
import { ConfigError, type ConfigProblem } from './problem.ts'
import type { Path } from './reader.ts'
import { type Config, ConfigSchema } from './schema.ts'
import { shapeProblems } from './shape.ts'

export interface LoadedConfig {
  readonly config: Config
  /** The base folder for relative file names in the configuration, as an absolute path. */
  readonly folder: string
  /** Absolute paths of all files and folders read, starting with the configuration. Watch them for changes. */
  readonly files: readonly string[]
  /** Envoy's domains, if any are configured. */
  readonly domains?: Domains
  /** The result of {@link shownConfig}. Absent if the configuration wasn't loaded from text. */
  readonly shown?: string
}

export interface LoadOptions {
  /** Default: `process.env`. */
  readonly environment?: NodeJS.ProcessEnv
  /** Addresses that override those in the file. */
  readonly listen?: { readonly http?: string | undefined; readonly grpc?: string | undefined }
  /**
   * Whether to read files named in the text. Default: true.
   *
   * Turn it off for text from a caller. Otherwise, the caller could probe for files.
   */
  readonly looksAtFiles?: boolean
}

/** @throws {ConfigError} with all problems */
export function loadConfig(file: string, options: LoadOptions = {}): LoadedConfig {
  return loadText(file, readText(file), options)
}

/**
 * Loads text as if it were in this file.
 *
 * @throws {ConfigError} with all problems
 */
export function loadText(file: string, text: string, options: LoadOptions = {}): LoadedConfig {
  const { environment = process.env, looksAtFiles = true } = options
  const document = readDocument(file, text, environment)
  const problems = new Problems(document)
  const folder = dirname(resolve(file))
  const config = configIn(document, problems)
  if (config === undefined) throw problems.error()
  const { http, grpc } = options.listen ?? {}
  if (http || grpc) config.listen = { ...config.listen, ...(http && { http }), ...(grpc && { grpc }) }
  const checked: Checked = {
    config,
    folder,
    environment,
    looksAtFiles,
    isSound: (path) => problems.areNoneIn(path),
    complain: (path, message, at) => problems.add(path, message, at),
  }
  // Limiters come first, because rules are only checked against valid limiters.
  checkLimiters(checked)
  checkService(checked)
  checkCapture(checked)
  const domains =
    looksAtFiles && problems.areNoneIn(['envoy']) ? domainsOf(config, folder, problems) : undefined
  if (problems.areSome()) throw problems.error()
  return {
    config,
    folder,
    files: [resolve(file), ...(domains?.files ?? [])],
    ...(domains && { domains }),
    shown: shownConfig(file, text),
  }
}

/** Returns the configuration in a document, or undefined if the document isn't an object. */
function configIn(document: SourceDocument, problems: Problems): Config | undefined {
  for (const { path, problem } of shapeProblems(document)) problems.addFound(path, problem)
  const { value } = document
  if (!isObject(value)) return undefined
  const limiters = 'limiters' in value && isObject(value.limiters) ? value.limiters : {}
  return { ...value, limiters } as Config
}

function domainsOf({ envoy }: Config, folder: string, problems: Problems): Domains | undefined {
  if (envoy === undefined) return undefined
  try {
    return readDomains(envoy.files, folder)
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    problems.addOthers(error.problems)
    return undefined
  }
}

/** Collects problems, and the parts of the configuration that contain them. */
class Problems {
  readonly #document: SourceDocument
  /** Problems by content, because the same problem may be found twice. */
  readonly #found = new Map<string, ConfigProblem>()
  readonly #elsewhere: ConfigProblem[] = []
  /** Paths of parts with problems. */
  readonly #parts = new Set<string>()

  constructor(document: SourceDocument) {
    this.#document = document
  }

  add(path: Path, message: string, at?: 'value' | 'key'): void {
    this.addFound(path, this.#document.problemAt(path, message, at))
  }

  addFound(path: Path, problem: ConfigProblem): void {
    for (let length = 0; length <= path.length; length++) this.#parts.add(wordOf(path.slice(0, length)))
    this.#found.set(JSON.stringify(problem), problem)
  }

  /** Adds problems in other files. */
  addOthers(problems: readonly ConfigProblem[]): void {
    this.#elsewhere.push(...problems)
  }

  areNoneIn(path: Path): boolean {
    return !this.#parts.has(wordOf(path))
  }

  areSome(): boolean {
    return this.#found.size + this.#elsewhere.length > 0
  }

  /** Returns all problems as one error, sorted by position. Problems in other files come last. */
  error(): ConfigError {
    const found = Array.from(this.#found.values()).sort((a, b) => a.line - b.line || a.column - b.column)
    return new ConfigError([...found, ...this.#elsewhere])
  }
}

function wordOf(path: Path): string {
  return JSON.stringify(path.map(String))
}

const HIDDEN = '***'

/** Matches a variable without a default. It may be shown even if it stands for a secret. */
const VARIABLE = /^\$\{\w+\}$/

/**
 * Returns the configuration as shown to callers that may read it.
 *
 * The text has no secrets or comments, and variables are shown by name. Equal configurations give equal text,
 * regardless of their formatting.
 *
 * @throws {ConfigError} if the text isn't YAML
 */
export function shownConfig(file: string, text: string): string {
  return stringify(masked(readDocument(file, text).value), { sortMapEntries: true })
}

function masked(value: unknown, isSecret = false): unknown {
  if (Array.isArray(value)) return value.map((each) => masked(each, isSecret))
  if (isObject(value)) {
    return Object.fromEntries(
      Object.entries(value).map(([name, each]) => [name, masked(each, SECRETS.has(name))]),
    )
  }
  if (!isSecret || value === null || VARIABLE.test(String(value))) return value
  return HIDDEN
}

/** The values of fields with these names are always hidden. */
const SECRETS: ReadonlySet<string> = new Set(secretsIn(ConfigSchema))

function secretsIn(schema: unknown): string[] {
  if (typeof schema !== 'object' || schema === null) return []
  return Object.entries(schema).flatMap(([name, inner]) => {
    const isSecret = typeof inner === 'object' && inner?.writeOnly === true
    return isSecret ? [name] : secretsIn(inner)
  })
}
