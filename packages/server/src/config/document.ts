// Parses YAML or JSON, and finds where each value is.

import { readFileSync } from 'node:fs'
import { Composer, type CST, type ParsedNode, Parser } from 'yaml'
import { messageOf } from '#replay/errors.js'
import { ConfigError, type ConfigProblem } from './problem.ts'
import { MAX_DEPTH, type Path, Reader, TOO_DEEP } from './reader.ts'

/** The data of a file, and where in it each value stands. */
export interface SourceDocument {
  readonly file: string
  /** Plain data: objects, arrays, strings, numbers, booleans, null. */
  readonly value: unknown
  /** At a value, or at the nearest parent there is; with `key` at the name that it has in its object. */
  problemAt(path: Path, message: string, at?: 'value' | 'key'): ConfigProblem
  /** Whether a value was made of environment variables: of nothing but one, or among other text. */
  variableAt(path: Path): 'whole' | 'part' | undefined
}

const MAX_BYTES = 4 * 2 ** 20
const MAX_SYNTAX_PROBLEMS = 5
const LONGEST_MESSAGE = 500

/** @throws {ConfigError} for a file that cannot be read, or is not text */
export function readText(file: string): string {
  let bytes: Buffer
  try {
    bytes = readFileSync(file)
  } catch (error) {
    throw new ConfigError([atStart(file, `the file cannot be read: ${messageOf(error)}`)])
  }
  if (bytes.length > MAX_BYTES) throw new ConfigError([atStart(file, 'the file is larger than 4 MiB')])
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    throw new ConfigError([atStart(file, 'the file is not text in UTF-8')])
  }
}

/**
 * Reads YAML 1.2, and with it JSON. With an environment `${NAME}` and `${NAME:-default}` in strings are replaced, and `$$` is
 * a dollar.
 *
 * @throws {ConfigError}
 */
export function readDocument(file: string, text: string, environment?: NodeJS.ProcessEnv): SourceDocument {
  const content = text.replace(/^\uFEFF/, '')
  const placeOf = placesIn(content)
  const problemFor = (offset: number, message: string): ConfigProblem => {
    const shown = message.length > LONGEST_MESSAGE ? `${message.slice(0, LONGEST_MESSAGE)}...` : message
    return { file, ...placeOf(offset), message: shown }
  }
  const contents = parse(content, problemFor)
  const reader = new Reader(problemFor, environment)
  const value = contents === null ? null : reader.read(contents)
  if (reader.problems.length > 0) throw new ConfigError(reader.problems)
  return {
    file,
    value,
    problemAt: (path, message, at = 'value') =>
      problemFor(reader.offsetOf(contents, path, at), withoutSecrets(message, reader.secrets)),
    variableAt: (path) => reader.variableAt(contents, path),
  }
}

/** Finds lines and columns. The counter of the parser misses lines behind mistakes. */
function placesIn(text: string): (offset: number) => { readonly line: number; readonly column: number } {
  const starts = [0]
  for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', at + 1)) starts.push(at + 1)
  return (offset) => {
    const at = Math.min(Math.max(offset, 0), text.length)
    let line = 0
    for (let step = 2 ** Math.ceil(Math.log2(starts.length)); step >= 1; step /= 2) {
      if ((starts[line + step] ?? Number.POSITIVE_INFINITY) <= at) line += step
    }
    return { line: line + 1, column: at - starts[line]! + 1 }
  }
}

function parse(
  text: string,
  problemFor: (offset: number, message: string) => ConfigProblem,
): ParsedNode | null {
  const tokens = Array.from(new Parser().parse(text))
  const tooDeep = firstTooDeep(tokens)
  if (tooDeep !== undefined) throw new ConfigError([problemFor(tooDeep, TOO_DEEP)])
  // Names that are there twice are found below: here each would be compared with all others.
  const composer = new Composer({ schema: 'core', resolveKnownTags: false, uniqueKeys: false })
  const [document, another] = composer.compose(tokens, true, text.length)
  if (document === undefined) return null
  if (another !== undefined)
    throw new ConfigError([
      problemFor(another.range[0], 'this begins a second document: one is all there may be'),
    ])
  // A tag that nobody knows is no more than a warning to the parser.
  const found = [...document.errors, ...document.warnings].sort((a, b) => a.pos[0] - b.pos[0])
  const problems = found.map(({ pos, message }) => problemFor(pos[0], syntaxMessage(message, text, pos[0])))
  // One mistake makes many, mostly on its own line.
  const first = problems.filter(({ line }, i) => line !== problems[i - 1]?.line).slice(0, MAX_SYNTAX_PROBLEMS)
  if (first.length > 0) throw new ConfigError(first)
  return document.contents as ParsedNode | null
}

/** Where tokens are nested deeper than what the composer, which goes by recursion, can be given. */
function firstTooDeep(tokens: readonly CST.Token[]): number | undefined {
  let level: readonly CST.Token[] = tokens
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > MAX_DEPTH) return level[0]!.offset
    level = level.flatMap((token) => {
      if (token.type === 'document') return token.value === undefined ? [] : [token.value]
      if (!('items' in token)) return []
      return token.items.flatMap(({ key, value }) => [key, value].filter((inner) => inner != null))
    })
  }
  return undefined
}

/** What the parser says, without the text that it has found: that could be a secret. */
function syntaxMessage(said: string, text: string, offset: number): string {
  if (text.startsWith('${', offset - 1)) return 'between braces or brackets a variable has to stand in quotes'
  return `this is not valid YAML: ${said.replace(/: ".*$/s, '')}`
}

function atStart(file: string, message: string): ConfigProblem {
  return { file, line: 1, column: 1, message }
}

/** A shorter one is none, and could be any word of a message. */
const SHORTEST_SECRET = 8
/** Messages repeat so much of a text at most: ours, and those of the library. */
const SHOWN = [64, 40]

function withoutSecrets(message: string, secrets: ReadonlyMap<string, string>): string {
  let cleaned = message
  for (const [value, name] of secrets) {
    // Of a number also what it was made: without the zeros around it.
    for (const part of [value, `${Number(value)}`, ...SHOWN.map((length) => value.slice(0, length))]) {
      for (const text of [part, JSON.stringify(part).slice(1, -1)]) {
        if (text.length >= SHORTEST_SECRET) cleaned = cleaned.replaceAll(text, () => `\${${name}}`)
      }
    }
  }
  return cleaned
}
