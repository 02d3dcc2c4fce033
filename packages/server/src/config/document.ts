import { readFileSync } from 'node:fs'
import {
  type Alias,
  Composer,
  type CST,
  isAlias,
  isMap,
  isScalar,
  isSeq,
  type Node,
  type Pair,
  type ParsedNode,
  Parser,
  Scalar,
  type YAMLMap,
} from 'yaml'
import { messageOf } from '../errors.ts'
import { ConfigError, type ConfigProblem } from './problem.ts'
import { replaceVariables } from './variables.ts'

export type Path = readonly (string | number)[]

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
/** With those that aliases repeat. */
const MAX_VALUES = 500_000
const MAX_DEPTH = 100
const TOO_DEEP = 'values are nested deeper than 100 levels'
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

/** What a map or a list holds. */
interface Member {
  readonly key?: Node
  readonly value: Node | null
}

/** Makes plain data of nodes; knows afterwards which node is where. */
class Reader {
  readonly problems: ConfigProblem[] = []
  /** Values of variables, and what these are called. */
  readonly secrets = new Map<string, string>()
  readonly #problemFor: (offset: number, message: string) => ConfigProblem
  readonly #environment: NodeJS.ProcessEnv | undefined
  /** Those seen so far: a later anchor of the same name takes the place of an earlier one. */
  readonly #anchors = new Map<string, Node>()
  readonly #targets = new Map<Alias, Node>()
  readonly #variables = new Map<Node, 'whole' | 'part'>()
  readonly #pairs = new Map<Node, ReadonlyMap<string, Member>>()
  /** Nodes around the one that is being read. */
  readonly #open = new Set<Node>()
  #aliasesAround = 0
  #values = 0

  constructor(
    problemFor: (offset: number, message: string) => ConfigProblem,
    environment: NodeJS.ProcessEnv | undefined,
  ) {
    this.#problemFor = problemFor
    this.#environment = environment
  }

  read(node: Node): unknown {
    if (++this.#values > MAX_VALUES) throw this.#refused(node, 'there are more than 500,000 values')
    if (this.#open.size > MAX_DEPTH) throw this.#refused(node, TOO_DEEP)
    if (isAlias(node)) return this.#readAlias(node)
    if (node.anchor && this.#aliasesAround === 0) this.#anchors.set(node.anchor, node)
    if (isScalar(node)) return this.#readScalar(node)
    this.#open.add(node)
    const value = isMap(node)
      ? this.#readPairs(node.items as Pair<Node, Node | null>[])
      : isSeq(node)
        ? (node.items as Node[]).map((item) => this.read(item))
        : null
    this.#open.delete(node)
    return value
  }

  offsetOf(root: Node | null, path: Path, at: 'value' | 'key'): number {
    let node = root
    let offset = startOf(node)
    for (const [depth, step] of path.entries()) {
      const next = this.#step(node, step)
      if (next === undefined) break
      const isLast = depth === path.length - 1
      const shown = isLast && at === 'key' ? (next.key ?? next.value) : (next.value ?? next.key)
      // What an alias or a merge stands for is elsewhere: there is the mistake.
      offset = startOf(shown)
      node = next.value
    }
    return offset
  }

  variableAt(root: Node | null, path: Path): 'whole' | 'part' | undefined {
    let node = root
    for (const step of path) node = this.#step(node, step)?.value ?? null
    const target = this.#target(node)
    return target === null ? undefined : this.#variables.get(target)
  }

  #readAlias(alias: Alias): unknown {
    // Within the node of another alias all aliases are known.
    const target = this.#targets.get(alias) ?? this.#anchors.get(alias.source)
    if (target === undefined) {
      this.#complain(alias, `there is no anchor &${alias.source} before this alias`)
      return null
    }
    if (this.#open.has(target)) {
      this.#complain(alias, `*${alias.source} stands within what it stands for`)
      return null
    }
    this.#targets.set(alias, target)
    this.#aliasesAround++
    const value = this.read(target)
    this.#aliasesAround--
    return value
  }

  #readScalar(node: Scalar): unknown {
    const { value } = node
    if (typeof value !== 'string' || this.#environment === undefined) return value
    const { text, variables, problems } = replaceVariables(value, this.#environment)
    for (const [name, secret] of variables) this.secrets.set(secret, name)
    if (text !== value) this.#variables.set(node, /^\$\{[^}]*\}$/.test(value) ? 'whole' : 'part')
    if (this.#aliasesAround === 0) for (const problem of problems) this.#complain(node, problem)
    return text
  }

  #readPairs(pairs: readonly Pair<Node, Node | null>[]): unknown {
    const own = new Map<string, unknown>()
    const merged = new Map<string, unknown>()
    for (const { key, value } of pairs) {
      if (isMerge(key)) {
        for (const [name, each] of this.#readMerged(value)) if (!merged.has(name)) merged.set(name, each)
        continue
      }
      const name = nameOf(key)
      if (name === undefined) {
        this.#complain(key ?? value, 'a name has to be a plain text')
      } else if (own.has(name)) {
        this.#complain(key, `${JSON.stringify(name)} is there twice`)
      } else {
        own.set(name, value === null ? null : this.read(value))
      }
    }
    // Not by assignment: a name may be __proto__.
    return Object.fromEntries([...own, ...Array.from(merged).filter(([name]) => !own.has(name))])
  }

  /** What `<<` brings: names of a map, or of several, the first before the others. */
  #readMerged(value: Node | null): [string, unknown][] {
    const before = this.problems.length
    const read = value === null ? null : this.read(value)
    const sources = Array.isArray(read) ? [...read].reverse() : [read]
    if (!sources.every(isObject)) {
      if (this.problems.length === before) this.#complain(value, '<< takes a map, or a list of maps')
      return []
    }
    return Array.from(new Map(sources.flatMap((source) => Object.entries(source))))
  }

  #step(node: Node | null, step: string | number): Member | undefined {
    const target = this.#target(node)
    if (isSeq(target)) {
      const item = target.items[Number(step)] as Node | undefined
      return item === undefined ? undefined : { value: item }
    }
    return isMap(target) ? this.#pairsOf(target).get(String(step)) : undefined
  }

  /** Those of a map by their names, and those that it merges. */
  #pairsOf(map: YAMLMap): ReadonlyMap<string, Member> {
    const known = this.#pairs.get(map)
    if (known !== undefined) return known
    const pairs = map.items as Pair<Node, Node | null>[]
    const found = new Map<string, Member>()
    for (const pair of pairs) if (!isMerge(pair.key)) found.set(nameOf(pair.key)!, pair)
    for (const { key, value } of pairs) {
      if (!isMerge(key)) continue
      const merged = this.#target(value)
      for (const source of isSeq(merged) ? (merged.items as Node[]) : [merged]) {
        const inside = this.#target(source)
        for (const [name, pair] of isMap(inside) ? this.#pairsOf(inside) : [])
          if (!found.has(name)) found.set(name, pair)
      }
    }
    this.#pairs.set(map, found)
    return found
  }

  #target(node: Node | null): Node | null {
    return isAlias(node) ? (this.#targets.get(node) ?? null) : node
  }

  #complain(node: Node | null, message: string): void {
    this.problems.push(this.#problemFor(startOf(node), message))
  }

  #refused(node: Node, message: string): ConfigError {
    return new ConfigError([this.#problemFor(startOf(node), message)])
  }
}

function startOf(node: Node | null | undefined): number {
  return node?.range?.[0] ?? 0
}

function isMerge(key: unknown): boolean {
  return isScalar(key) && key.value === '<<' && key.type === Scalar.PLAIN
}

/** As it is written: `1e3` is no `1000`. */
function nameOf(key: unknown): string | undefined {
  if (!isScalar(key) || key.value === null) return undefined
  return typeof key.value === 'string' ? key.value : (key.source ?? String(key.value))
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
