// START HERE: a file -> a configuration, or all that is wrong with it.

import { dirname, resolve } from 'node:path'
import { stringify } from 'yaml'
import { type Domains, readDomains } from '../envoy/domains.ts'
import { type Checked, checkCapture, checkService } from './checks.ts'
import { readDocument, readText, type SourceDocument } from './document.ts'
import { checkLimiters } from './limiter-checks.ts'
import { ConfigError, type ConfigProblem } from './problem.ts'
import { isObject, type Path } from './reader.ts'
import { type Config, ConfigSchema } from './schema.ts'
import { shapeProblems } from './shape.ts'

/** A configuration as a file has it, and as it was checked. */
export interface LoadedConfig {
  readonly config: Config
  /** Absolute; against it are the names of files in the configuration. */
  readonly folder: string
  /** All that were read, the configuration first, and folders that were looked into: when one changes, so may this. Absolute. */
  readonly files: readonly string[]
  /** Of Envoy, where there are any. */
  readonly domains?: Domains
  /** As it may be shown: see {@link shownConfig}. Left out where there is no text. */
  readonly shown?: string
}

export interface LoadOptions {
  /** Default: that of the process. */
  readonly environment?: NodeJS.ProcessEnv
  /** Addresses in place of those in the file. */
  readonly listen?: { readonly http?: string | undefined; readonly grpc?: string | undefined }
  /** Whether files that it names are looked at; with those of others one could find out what is there. Default: true. */
  readonly looksAtFiles?: boolean
}

/** @throws {ConfigError} with all that is wrong, where, and what would be right */
export function loadConfig(file: string, options: LoadOptions = {}): LoadedConfig {
  return loadText(file, readText(file), options)
}

/**
 * The same of a text that stands in no file, as if it stood in this one.
 *
 * @throws {ConfigError}
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
  // Limiters come first: rules are only checked against sound ones.
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

/** Nothing where it is not even an object. */
function configIn(document: SourceDocument, problems: Problems): Config | undefined {
  for (const { path, problem } of shapeProblems(document)) problems.note(path, problem)
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
    problems.noteAll(error.problems)
    return undefined
  }
}

/** All that is wrong, and in which parts. */
class Problems {
  readonly #document: SourceDocument
  /** By what they say, for the same may be found twice. */
  readonly #found = new Map<string, ConfigProblem>()
  readonly #elsewhere: ConfigProblem[] = []
  /** Paths of parts in which something is wrong. */
  readonly #parts = new Set<string>()

  constructor(document: SourceDocument) {
    this.#document = document
  }

  add(path: Path, message: string, at?: 'value' | 'key'): void {
    this.note(path, this.#document.problemAt(path, message, at))
  }

  note(path: Path, problem: ConfigProblem): void {
    for (let length = 0; length <= path.length; length++) this.#parts.add(wordOf(path.slice(0, length)))
    this.#found.set(JSON.stringify(problem), problem)
  }

  /** Of other files. */
  noteAll(problems: readonly ConfigProblem[]): void {
    this.#elsewhere.push(...problems)
  }

  areNoneIn(path: Path): boolean {
    return !this.#parts.has(wordOf(path))
  }

  areSome(): boolean {
    return this.#found.size + this.#elsewhere.length > 0
  }

  /** In the order of the file. */
  error(): ConfigError {
    const found = Array.from(this.#found.values()).sort((a, b) => a.line - b.line || a.column - b.column)
    return new ConfigError([...found, ...this.#elsewhere])
  }
}

function wordOf(path: Path): string {
  return JSON.stringify(path.map(String))
}

const HIDDEN = '***'

/** A variable in the place of a secret is none, unless it has a default. */
const VARIABLE = /^\$\{\w+\}$/

/**
 * A configuration as it may be shown to whoever may look at the service: without secrets and comments, and with the names of
 * variables in place of what they stand for. Two that are written differently and say the same are shown alike.
 *
 * @throws {ConfigError} for a text that is no YAML
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

/** What is called like one of these is hidden, wherever it stands. */
const SECRETS: ReadonlySet<string> = new Set(secretsIn(ConfigSchema))

function secretsIn(schema: unknown): string[] {
  if (typeof schema !== 'object' || schema === null) return []
  return Object.entries(schema).flatMap(([name, inner]) => {
    const isSecret = typeof inner === 'object' && inner?.writeOnly === true
    return isSecret ? [name] : secretsIn(inner)
  })
}
