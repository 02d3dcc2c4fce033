// Parses rule files in the format of envoyproxy/ratelimit.

import { parseDocument } from 'yaml'
import { readDocument, readText, type SourceDocument } from '../config/document.ts'
import { ConfigError, type ConfigProblem } from '../config/problem.ts'
import type { Path } from '../config/reader.ts'
import { isObject } from '../is-object.ts'
import { Branch, Domain, MAX_UINT32, type RuleOptions, ruleOf, UNITS, type Unit } from './domain.ts'

/** Field names in this format, allowed at any level. In the wrong place, they have no effect. */
const WORDS = new Set(
  [
    'domain descriptors key value rate_limit unit requests_per_unit unlimited name replaces',
    'shadow_mode quota_mode detailed_metric value_to_metric share_threshold metadata',
  ].flatMap((line) => line.split(' ')),
)

/** Maximum number of levels. No gateway sends descriptors with that many entries. */
const MAX_LEVELS = 32

type Fields = Readonly<Record<string, unknown>>

export class Source {
  readonly problems: ConfigProblem[] = []
  readonly #text: string
  readonly #source: SourceDocument
  #words: ReturnType<typeof parseDocument> | undefined

  constructor(file: string) {
    this.#text = readText(file)
    this.#source = readDocument(file, this.#text)
  }

  complain(path: Path, message: string): void {
    this.problems.push(this.#source.problemAt(path, message))
  }

  /** @throws {ConfigError} */
  domain(): Domain {
    const root = this.#fields(this.#source.value, [], 'the file')
    const name = this.#string(root, [], 'domain')
    if (name === '') {
      this.complain([], 'the file has no domain; add domain: <name>')
    }
    const domain = new Domain(name)
    this.#addAll(domain.root, root, [], [])
    if (this.problems.length > 0) throw new ConfigError(this.problems)
    return domain
  }

  #addAll(parent: Branch, fields: Fields, at: Path, keys: readonly string[]): void {
    const { descriptors = null } = fields
    if (descriptors === null) return
    if (!Array.isArray(descriptors)) {
      this.complain([...at, 'descriptors'], 'descriptors must be a list')
      return
    }
    if (keys.length === MAX_LEVELS) {
      this.complain([...at, 'descriptors'], `descriptors are nested deeper than ${MAX_LEVELS} levels`)
      return
    }
    descriptors.forEach((each, index) => {
      this.#add(parent, each, [...at, 'descriptors', index], keys)
    })
  }

  #add(parent: Branch, given: unknown, at: Path, parents: readonly string[]): void {
    const fields = this.#fields(given, at, 'a descriptor')
    const key = this.#string(fields, at, 'key')
    if (key === '') {
      this.complain(at, 'the descriptor has no key; add key: <name>')
      return
    }
    const value = this.#string(fields, at, 'value')
    const both = value === '' ? key : `${key}_${value}`
    const keys = [...parents, both]
    if (parent.children.has(both)) {
      this.complain(at, `duplicate descriptor ${JSON.stringify(keys.join('.'))} at this level`)
      return
    }
    const isShared = this.#boolean(fields, at, 'share_threshold')
    if (isShared && !both.includes('*')) {
      this.complain(
        [...at, 'share_threshold'],
        'share_threshold requires a value with a wildcard, such as files/*',
      )
    }
    const options = this.#rule(fields, at)
    const rule = options && ruleOf(keys, options)
    const branch = new Branch(rule, {
      isShared,
      hasValueInMetric: this.#boolean(fields, at, 'value_to_metric'),
    })
    parent.children.set(both, branch)
    if (both.includes('*')) parent.wildcards.push(both)
    this.#addAll(branch, fields, at, keys)
  }

  #rule(fields: Fields, at: Path): RuleOptions | undefined {
    const { rate_limit: given = null, metadata = null } = fields
    const isShadow = this.#boolean(fields, at, 'shadow_mode')
    const isQuota = this.#boolean(fields, at, 'quota_mode')
    const hasDetailedMetric = this.#boolean(fields, at, 'detailed_metric')
    if (metadata !== null && !isObject(metadata)) {
      this.complain([...at, 'metadata'], 'metadata must be an object')
    }
    if (given === null) return undefined
    const path = [...at, 'rate_limit']
    const limit = this.#fields(given, path, 'rate_limit')
    const isUnlimited = this.#boolean(limit, path, 'unlimited')
    const unit = this.#unit(limit, path, isUnlimited)
    const name = this.#string(limit, path, 'name')
    return {
      ...{ unit, isUnlimited, isShadow, isQuota, hasDetailedMetric, name },
      requestsPerUnit: this.#count(limit, path),
      replaces: this.#replaces(limit, path, name),
      metadata: isObject(metadata) && Object.keys(metadata).length > 0 ? metadata : undefined,
    }
  }

  #unit(limit: Fields, at: Path, isUnlimited: boolean): Unit | undefined {
    const word = this.#string(limit, at, 'unit')
    const unit = word.toUpperCase()
    const isUnit = Object.hasOwn(UNITS, unit)
    if (isUnlimited && isUnit)
      this.complain([...at, 'unit'], 'both unit and unlimited are set; remove one of them')
    if (isUnlimited) return undefined
    if (isUnit) return unit as Unit
    const right = Object.keys(UNITS).join(', ').toLowerCase()
    this.complain([...at, 'unit'], `the unit is ${JSON.stringify(word)}; it must be one of ${right}`)
    return undefined
  }

  #count(limit: Fields, at: Path): number {
    const { requests_per_unit: count = null } = limit
    if (count === null) return 0
    if (typeof count === 'number' && Number.isInteger(count) && count >= 0 && count <= MAX_UINT32)
      return count
    this.complain(
      [...at, 'requests_per_unit'],
      `requests_per_unit is ${JSON.stringify(count)}; it must be an integer from 0 to ${MAX_UINT32}`,
    )
    return 0
  }

  #replaces(limit: Fields, at: Path, own: string): readonly string[] {
    const { replaces = null } = limit
    if (replaces === null) return []
    const path = [...at, 'replaces']
    if (!Array.isArray(replaces)) {
      this.complain(path, 'replaces must be a list of names: - name: <name>')
      return []
    }
    return replaces.map((each, index) => {
      const item = [...path, index]
      const name = this.#string(this.#fields(each, item, 'an entry in replaces'), item, 'name')
      if (name === '') this.complain(item, 'this entry has no name; add name: <name>')
      else if (name === own) this.complain(item, "a limit can't replace itself")
      return name
    })
  }

  #fields(value: unknown, at: Path, what: string): Fields {
    if (!isObject(value)) {
      this.complain(at, `${what} must be an object`)
      return {}
    }
    for (const word of Object.keys(value)) {
      if (WORDS.has(word)) continue
      const right = Array.from(WORDS).join(', ')
      this.problems.push(
        this.#source.problemAt(
          [...at, word],
          `unknown field ${JSON.stringify(word)}; expected one of ${right}`,
          'key',
        ),
      )
    }
    return value
  }

  /** A string. YAML numbers and booleans keep their source text, as in envoyproxy/ratelimit. */
  #string(fields: Fields, at: Path, name: string): string {
    const value = fields[name] ?? ''
    if (typeof value === 'string') return value
    if (typeof value === 'number' || typeof value === 'boolean') return this.#textAt([...at, name], value)
    this.complain([...at, name], `${name} must be text`)
    return ''
  }

  #textAt(path: Path, value: number | boolean): string {
    this.#words ??= parseDocument(this.#text, { schema: 'failsafe' })
    const text = this.#words.getIn(path)
    return typeof text === 'string' ? text : String(value)
  }

  #boolean(fields: Fields, at: Path, name: string): boolean {
    const value = fields[name] ?? false
    if (typeof value === 'boolean') return value
    // YAML 1.1 has more words for true and false.
    if (typeof value === 'string' && /^(y|yes|on|true)$/i.test(value)) return true
    if (typeof value === 'string' && /^(n|no|off|false)$/i.test(value)) return false
    this.complain([...at, name], `${name} must be true or false`)
    return false
  }
}
