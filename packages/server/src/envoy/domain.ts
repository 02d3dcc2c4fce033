import { createHash } from 'node:crypto'
import { tupleKey } from 'slidegate'
import { fits } from '../service/pattern.ts'
import { limiterNameOf, type Rule } from './rule.ts'

export interface Entry {
  readonly key: string
  readonly value: string
}

/** The rule that a descriptor is held to, and whom it counts. */
export interface Match {
  readonly rule: Rule
  readonly key: string
  /** What it is counted under in metrics. */
  readonly metric: string
}

/** A descriptor of a file. */
export class Branch {
  /** By key, or by key and value, as in `key_value`. */
  readonly children = new Map<string, Branch>()
  /** Those of them with a wildcard, in the order of the file. */
  readonly wildcards: string[] = []
  readonly rule: Rule | undefined
  readonly hasValueInMetric: boolean
  readonly isShared: boolean

  constructor(rule?: Rule, { hasValueInMetric = false, isShared = false } = {}) {
    this.rule = rule
    this.hasValueInMetric = hasValueInMetric
    this.isShared = isShared
  }

  /** By what the closest child fits: by key and value, else by a wildcard, else by the key alone. */
  closest({ key, value }: Entry): string | undefined {
    const both = `${key}_${value}`
    if (this.children.has(both)) return both
    if (this.wildcards.length > 0) {
      const wildcard = this.wildcards.find((pattern) => fits(pattern, both))
      if (wildcard !== undefined) return wildcard
    }
    return this.children.has(key) ? key : undefined
  }
}

/** The rules of a domain. */
export class Domain {
  readonly name: string
  readonly limiterName: string
  readonly root = new Branch()

  constructor(name: string) {
    this.name = name
    this.limiterName = limiterNameOf(name)
  }

  /** The rule of a descriptor with as many entries as it has levels in the file. */
  match(entries: readonly Entry[]): Match | undefined {
    let branch = this.root
    let hasValuesInMetric = false
    let counted = ''
    for (let i = 0; i < entries.length; i++) {
      const entry = entries[i]!
      const by = branch.closest(entry)
      if (by === undefined) return undefined
      branch = branch.children.get(by)!
      hasValuesInMetric ||= branch.hasValueInMetric
      const part = partOf(entry.key, sharedValueOf(entry, by, branch) ?? entry.value)
      counted = i === 0 ? part : `${counted}|${part}`
    }
    const { rule } = branch
    if (rule === undefined) return undefined
    const isUsual = !hasValuesInMetric && !rule.hasDetailedMetric
    return { rule, key: counted, metric: isUsual ? rule.path : this.#metricOf(entries, rule) }
  }

  *rules(branch: Branch = this.root): Generator<Rule> {
    for (const child of branch.children.values()) {
      if (child.rule !== undefined) yield child.rule
      yield* this.rules(child)
    }
  }

  #metricOf(entries: readonly Entry[], { hasDetailedMetric }: Rule): string {
    let branch = this.root
    const words = entries.map((entry) => {
      const by = branch.closest(entry)!
      branch = branch.children.get(by)!
      const { key, value } = entry
      const shared = sharedValueOf(entry, by, branch)
      if (shared !== undefined) return `${key}_${shared}`
      return value !== '' && (hasDetailedMetric || branch.hasValueInMetric) ? `${key}_${value}` : by
    })
    return words.join('.')
  }
}

/** All values that fit such a wildcard are counted as this one. */
function sharedValueOf({ key, value }: Entry, by: string, child: Branch): string | undefined {
  if (!child.isShared || by === `${key}_${value}`) return undefined
  return by.startsWith(`${key}_`) ? by.slice(key.length + 1) : by
}

/** Longer ones would not all fit into one key, and what is refused many gateways let pass. */
const MAX_LENGTH = 512

/** How an entry stands in a key, between others. */
export function partOf(key: string, value: string): string {
  const name = /[%=]/.test(key) ? key.replaceAll('%', '%25').replaceAll('=', '%3D') : key
  const part = `${shortened(name)}=${shortened(value)}`
  return /[%|]/.test(part) ? tupleKey(part) : part
}

/** None is taken for another: what looks like a hash is hashed, too. */
function shortened(text: string): string {
  return text.length <= MAX_LENGTH && !text.startsWith('~')
    ? text
    : `~${createHash('sha256').update(text).digest('base64url')}`
}
