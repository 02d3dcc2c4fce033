import { stringify } from 'yaml'
import { isObject } from '../objects.ts'
import { readDocument } from './document.ts'
import { ConfigSchema } from './schema.ts'

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
