// Reads values, remembers their positions, and replaces ${VARIABLES}.

import { type Alias, isAlias, isMap, isScalar, isSeq, type Node, type Pair, Scalar, type YAMLMap } from 'yaml'
import { isObject } from '../is-object.ts'
import { ConfigError, type ConfigProblem } from './problem.ts'

export type Path = readonly (string | number)[]

/** Maximum number of values, including values that aliases repeat. */
const MAX_VALUES = 500_000
export const MAX_DEPTH = 100
export const TOO_DEEP = 'values are nested deeper than 100 levels'

/** A member of a map or list. */
interface Member {
  readonly key?: Node
  readonly value: Node | null
}

/** Converts nodes to plain data and remembers where each value is. */
export class Reader {
  readonly problems: ConfigProblem[] = []
  /** Names of the environment variables that were used, by value. */
  readonly secrets = new Map<string, string>()
  readonly #problemFor: (offset: number, message: string) => ConfigProblem
  readonly #environment: NodeJS.ProcessEnv | undefined
  /** Anchors so far. A later anchor replaces an earlier anchor with the same name. */
  readonly #anchors = new Map<string, Node>()
  readonly #targets = new Map<Alias, Node>()
  readonly #variables = new Map<Node, 'whole' | 'part'>()
  readonly #pairs = new Map<Node, ReadonlyMap<string, Member>>()
  /** Ancestors of the node being read. */
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
    if (++this.#values > MAX_VALUES) throw this.#fatal(node, 'there are more than 500,000 values')
    if (this.#open.size > MAX_DEPTH) throw this.#fatal(node, TOO_DEEP)
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
      // For an alias or merge, the problem is reported at its target, because the mistake is there.
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
    // An alias inside the target of another alias has already been resolved.
    const target = this.#targets.get(alias) ?? this.#anchors.get(alias.source)
    if (target === undefined) {
      this.#complain(alias, `unknown anchor &${alias.source}; it must be defined before this alias`)
      return null
    }
    if (this.#open.has(target)) {
      this.#complain(alias, `*${alias.source} contains itself`)
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
        this.#complain(key ?? value, 'a name must be plain text')
      } else if (own.has(name)) {
        this.#complain(key, `${JSON.stringify(name)} is defined twice`)
      } else {
        own.set(name, value === null ? null : this.read(value))
      }
    }
    // The members aren't assigned one by one, because a name may be __proto__.
    return Object.fromEntries([...own, ...Array.from(merged).filter(([name]) => !own.has(name))])
  }

  /** The members that `<<` merges. If there are several maps, earlier ones take precedence. */
  #readMerged(value: Node | null): [string, unknown][] {
    const before = this.problems.length
    const read = value === null ? null : this.read(value)
    const sources = Array.isArray(read) ? [...read].reverse() : [read]
    if (!sources.every(isObject)) {
      if (this.problems.length === before)
        this.#complain(value, 'the value of << must be a map or a list of maps')
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

  /** Own and merged members of a map, by name. */
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

  #fatal(node: Node, message: string): ConfigError {
    return new ConfigError([this.#problemFor(startOf(node), message)])
  }
}

function startOf(node: Node | null | undefined): number {
  return node?.range?.[0] ?? 0
}

function isMerge(key: unknown): boolean {
  return isScalar(key) && key.value === '<<' && key.type === Scalar.PLAIN
}

/** The name as written: `1e3` isn't `1000`. */
function nameOf(key: unknown): string | undefined {
  if (!isScalar(key) || key.value === null) return undefined
  return typeof key.value === 'string' ? key.value : (key.source ?? String(key.value))
}

/** Text with its variables replaced. */
interface Replaced {
  readonly text: string
  /** Values of the variables used, by name. */
  readonly variables: ReadonlyMap<string, string>
  readonly problems: ReadonlySet<string>
}

const VARIABLE = /\$(?:\$|\{([^{}]*)\})|\$\{/g
const REFERENCE = /^([A-Za-z_][A-Za-z0-9_]*)(?::-(.*))?$/s

/** Replaces `${NAME}`, `${NAME:-default}` and `$$`. Values aren't expanded again. */
function replaceVariables(text: string, environment: NodeJS.ProcessEnv): Replaced {
  const variables = new Map<string, string>()
  const problems = new Set<string>()
  const replaced = text.replace(VARIABLE, (match, reference?: string) => {
    if (match === '$$') return '$'
    const [, name, byDefault] = REFERENCE.exec(reference ?? '') ?? []
    if (name === undefined) {
      problems.add(`'$\u007b' starts a variable; to write it literally, use '$$\u007b'`)
      return match
    }
    const value = environment[name]
    if (byDefault !== undefined && (value === undefined || value === '')) return byDefault
    if (value === undefined) {
      problems.add(
        `the environment variable ${name} isn't set; set it or write a default: \${${name}:-default}`,
      )
      return ''
    }
    variables.set(name, value)
    return value
  })
  return { text: replaced, variables, problems }
}
