// Parses YAML or JSON, and finds the position of each value.

import { readFileSync } from 'node:fs'
import { Composer, type CST, type ParsedNode, Parser } from 'yaml'
import { messageOf } from '../../../replay/src/errors.ts'
import { ConfigError, type ConfigProblem } from './problem.ts'
import { MAX_DEPTH, type Path, Reader, TOO_DEEP } from './reader.ts'

/** A file's data, with the position of each value. */
export interface SourceDocument {
  readonly file: string
  /** Plain data: objects, arrays, strings, numbers, booleans, null. */
  readonly value: unknown
  /** Returns a problem, positioned at a value or its nearest existing parent. With `key`: at the value's name. */
  problemAt(path: Path, message: string, at?: 'value' | 'key'): ConfigProblem
  /** Whether the value is an environment variable (`whole`), or text that contains one (`part`). */
  variableAt(path: Path): 'whole' | 'part' | undefined
}

const MAX_BYTES = 4 * 2 ** 20
const MAX_SYNTAX_PROBLEMS = 5
const LONGEST_MESSAGE = 500

/** @throws {ConfigError} if the file can't be read or isn't text */
export function readText(file: string): string {
  let bytes: Buffer
  try {
    bytes = readFileSync(file)
  } catch (error) {
    throw new ConfigError([atStart(file, `can't read the file: ${messageOf(error)}`)])
  }
  if (bytes.length > MAX_BYTES) throw new ConfigError([atStart(file, 'the file is larger than 4 MiB')])
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    throw new ConfigError([atStart(file, "the file isn't UTF-8 text")])
  }
}

/**
 * Reads YAML 1.2 or JSON.
 *
 * @param environment values for `${NAME}` and `${NAME:-default}` in strings, where `$$` becomes a dollar sign. Default:
 * nothing is replaced
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

/** Returns a function that finds an offset's line and column. The parser's own counter misses lines after errors. */
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
  // `Reader` finds duplicate names. The composer's check is slow: it compares each name with every other name.
  const composer = new Composer({ schema: 'core', resolveKnownTags: false, uniqueKeys: false })
  const [document, another] = composer.compose(tokens, true, text.length)
  if (document === undefined) return null
  if (another !== undefined)
    throw new ConfigError([
      problemFor(another.range[0], 'a second document starts here; only one is allowed'),
    ])
  // Warnings count as errors, because the parser only warns about unknown tags.
  const found = [...document.errors, ...document.warnings].sort((a, b) => a.pos[0] - b.pos[0])
  const problems = found.map(({ pos, message }) => problemFor(pos[0], syntaxMessage(message, text, pos[0])))
  // One mistake often causes many errors, most of them on the same line.
  const first = problems.filter(({ line }, i) => line !== problems[i - 1]?.line).slice(0, MAX_SYNTAX_PROBLEMS)
  if (first.length > 0) throw new ConfigError(first)
  return document.contents as ParsedNode | null
}

/** Returns the offset of the first token that is nested too deeply. It could overflow the composer's stack. */
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

/** The parser's message without the quoted text, which may be a secret. */
function syntaxMessage(message: string, text: string, offset: number): string {
  if (text.startsWith('${', offset - 1)) return 'a variable inside braces or brackets must be quoted'
  return `invalid YAML: ${message.replace(/: ".*$/s, '')}`
}

function atStart(file: string, message: string): ConfigProblem {
  return { file, line: 1, column: 1, message }
}

/** Shorter values aren't hidden. They're rarely secrets, and could match ordinary words in a message. */
const SHORTEST_SECRET = 8
/** Maximum lengths of excerpts in messages from the service and from the YAML library. */
const SHOWN = [64, 40]

function withoutSecrets(message: string, secrets: ReadonlyMap<string, string>): string {
  let cleaned = message
  for (const [value, name] of secrets) {
    // A message may also contain the value as a number, without its leading and trailing zeros.
    for (const part of [value, `${Number(value)}`, ...SHOWN.map((length) => value.slice(0, length))]) {
      for (const text of [part, JSON.stringify(part).slice(1, -1)]) {
        if (text.length >= SHORTEST_SECRET) cleaned = cleaned.replaceAll(text, () => `\${${name}}`)
      }
    }
  }
  return cleaned
}
