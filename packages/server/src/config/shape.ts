// Turns schema violations into messages.

import { Ajv2020, type ErrorObject } from 'ajv/dist/2020.js'
import type { SourceDocument } from './document.ts'
import type { ConfigProblem } from './problem.ts'
import type { Path } from './reader.ts'
import { ConfigSchema } from './schema.ts'
import { listed, nearest, suggestion } from './suggestion.ts'

/** The schema fields that messages use. */
interface SchemaPart {
  readonly title?: string
  readonly type?: string
  readonly enum?: readonly unknown[]
  readonly const?: unknown
  readonly minimum?: number
  readonly exclusiveMinimum?: number
  readonly maximum?: number
  readonly minLength?: number
  readonly pattern?: string
  readonly minItems?: number
  readonly maxItems?: number
  readonly writeOnly?: boolean
  readonly anyOf?: readonly SchemaPart[]
  readonly oneOf?: readonly SchemaPart[]
  readonly properties?: Readonly<Record<string, SchemaPart>>
}

interface SchemaError extends Omit<ErrorObject<string, Record<string, unknown>>, 'parentSchema'> {
  readonly parentSchema?: SchemaPart
}

/** A value that violates the schema. */
interface ShapeProblem {
  readonly path: Path
  readonly problem: ConfigProblem
}

const ajv = new Ajv2020({
  // The schema is our own, and a test validates it.
  validateSchema: false,
  // Optimizing the generated code takes longer than it saves.
  code: { optimize: false },
  // Compiles the schema for limits once, instead of once per list of limits.
  inlineRefs: false,
  allErrors: true,
  verbose: true,
  discriminator: true,
  strict: true,
  allowUnionTypes: true,
})
const isConfig = ajv.compile(ConfigSchema)

/**
 * Returns the schema violations in a document.
 *
 * First converts variables to numbers or booleans where the schema needs one. This changes the document.
 */
export function shapeProblems(document: SourceDocument): readonly ShapeProblem[] {
  const found = errorsOf(document.value)
  const isCoerced = found.map((error) => coerced(document, pathOf(error)))
  const errors = isCoerced.includes(true) ? errorsOf(document.value) : found
  return errors.map((error) => ({ path: placeOf(error), problem: problemOf(document, error) }))
}

function errorsOf(value: unknown): readonly SchemaError[] {
  return isConfig(value) ? [] : relevant(isConfig.errors as SchemaError[])
}

/**
 * Reduces a union's errors to those of the alternative that was probably meant.
 *
 * If that isn't clear, only the union's own error remains. Ajv reports it right after the alternatives' errors.
 */
function relevant(errors: readonly SchemaError[]): readonly SchemaError[] {
  const kept: SchemaError[] = []
  for (const error of errors) {
    if (error.keyword === 'propertyNames') continue
    if (error.keyword !== 'anyOf') {
      kept.push(error)
      continue
    }
    const alternatives = new Map<string, SchemaError[]>()
    let last = kept.at(-1)
    while (last !== undefined && isWithin(last, error)) {
      kept.pop()
      const alternative = last.schemaPath.slice(error.schemaPath.length).split('/')[1]!
      alternatives.set(alternative, [last, ...(alternatives.get(alternative) ?? [])])
      last = kept.at(-1)
    }
    const meant = Array.from(alternatives.values()).filter((group) =>
      group.every((each) => each.instancePath !== error.instancePath || isAboutMembers(each)),
    )
    kept.push(...(meant.length === 1 ? meant[0]! : [error]))
  }
  return kept
}

function isWithin(inner: SchemaError, union: SchemaError): boolean {
  return (
    inner.schemaPath.startsWith(`${union.schemaPath}/`) &&
    (inner.instancePath === union.instancePath || inner.instancePath.startsWith(`${union.instancePath}/`))
  )
}

/** Whether the value has the right type and only its members are wrong. */
function isAboutMembers({ keyword }: SchemaError): boolean {
  return ['additionalProperties', 'required', 'discriminator', 'minProperties', 'minItems'].includes(keyword)
}

function pathOf({ instancePath }: SchemaError): Path {
  return instancePath
    .split('/')
    .slice(1)
    .map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~'))
}

/** The path of the error. For an invalid name, the path includes the name. */
function placeOf(error: SchemaError): Path {
  return error.propertyName === undefined ? pathOf(error) : [...pathOf(error), error.propertyName]
}

const NUMBER = /^[+-]?[0-9]{1,17}(\.[0-9]{1,17})?$/

function coerced({ value: root, variableAt }: SourceDocument, path: Path): boolean {
  if (variableAt(path) !== 'whole') return false
  const name = path.at(-1)!
  const parent = path
    .slice(0, -1)
    .reduce((value: unknown, step) => (value as Record<string, unknown>)[step], root)
  const values = parent as Record<string, unknown>
  const text = values[name] as string
  if (NUMBER.test(text)) values[name] = Number(text)
  else if (text === 'true' || text === 'false') values[name] = text === 'true'
  else return false
  return true
}

function problemOf(document: SourceDocument, error: SchemaError): ConfigProblem {
  const path = pathOf(error)
  const { keyword, params, parentSchema = {} } = error
  const what = wordsOf(path)
  switch (keyword) {
    case 'required': {
      const { missingProperty: name } = params as { missingProperty: string }
      const right = expected(parentSchema.properties?.[name] ?? {})
      return document.problemAt(path, `${name} is missing in ${what}; it must be ${right}`)
    }
    case 'additionalProperties': {
      const { additionalProperty: name } = params as { additionalProperty: string }
      const known = Object.keys(parentSchema.properties ?? {})
      const message = `unknown field ${JSON.stringify(name)} in ${what}; ${suggestion(name, known)}`
      return document.problemAt([...path, name], message, 'key')
    }
    case 'discriminator': {
      const kinds = (parentSchema.oneOf ?? []).map(({ properties }) => String(properties?.kind?.const))
      const { tagValue } = params as { tagValue: unknown }
      if (tagValue === undefined)
        return document.problemAt(path, `kind is missing in ${what}; it must be one of ${listed(kinds)}`)
      const kindPath = [...path, 'kind']
      return document.problemAt(
        kindPath,
        `${wordsOf(kindPath)} is ${shown(document, kindPath, tagValue)}; ${suggestion(String(tagValue), kinds)}`,
      )
    }
    default:
  }
  if (error.propertyName !== undefined) {
    const name = error.propertyName
    return document.problemAt(
      [...path, name],
      `${JSON.stringify(name.slice(0, 80))} is an invalid name in ${what}; it must be ${expected(parentSchema)}`,
      'key',
    )
  }
  return document.problemAt(
    path,
    `${what} is ${shown(document, path, error.data, parentSchema)}; ${rightFor(error)}`,
  )
}

function rightFor({ data, keyword, parentSchema = {}, params }: SchemaError): string {
  const words = parentSchema.enum ?? parentSchema.anyOf?.flatMap((each) => each.enum ?? [])
  const near = typeof data === 'string' && words !== undefined ? nearest(data, words.map(String)) : undefined
  const meant = near === undefined ? '' : `; did you mean ${near}?`
  if (keyword === 'minItems' || keyword === 'minProperties')
    return `it must have at least ${params.limit} ${params.limit === 1 ? 'entry' : 'entries'}`
  if (keyword === 'maxItems' || keyword === 'maxProperties')
    return `it must have at most ${params.limit} ${params.limit === 1 ? 'entry' : 'entries'}`
  return `it must be ${expected(parentSchema)}${isTextWithoutQuotes(data, parentSchema) ? ', in quotes' : ''}${meant}`
}

/** Whether quotes are missing. YAML reads an unquoted `007` as a number and `true` as a boolean. */
function isTextWithoutQuotes(data: unknown, { type, pattern }: SchemaPart): boolean {
  const isScalar = typeof data === 'number' || typeof data === 'boolean'
  return (
    isScalar && type === 'string' && (pattern === undefined || new RegExp(pattern, 'u').test(String(data)))
  )
}

/** Describes a valid value; completes "it must be ...". */
function expected(schema: SchemaPart): string {
  if (schema.title !== undefined) return schema.title
  if (schema.const !== undefined) return String(schema.const)
  if (schema.enum !== undefined)
    return schema.enum.length === 1 ? String(schema.enum[0]) : `one of ${listed(schema.enum)}`
  if (schema.anyOf !== undefined) return listed(schema.anyOf.map(expected))
  const { minimum, exclusiveMinimum, maximum } = schema
  const above = exclusiveMinimum === undefined ? '' : ` above ${exclusiveMinimum},`
  const from = minimum === undefined ? '' : ` from ${numeral(minimum)}`
  const to = maximum === undefined ? '' : `${from === '' ? ' up' : ''} to ${numeral(maximum)}`
  const range = `${above}${from}${to}`
  switch (schema.type) {
    case 'integer':
      return `an integer${range}`
    case 'number':
      return `a number${range}`
    case 'boolean':
      return 'true or false'
    case 'array':
      return 'a list'
    case 'object':
      return 'an object'
    default:
      return schema.minLength === undefined ? 'text' : 'non-empty text'
  }
}

function numeral(value: number): string {
  return value === 2 ** 40 ? '2^40' : value.toLocaleString('en-US')
}

/** Formats a path: `limiters.api.limits[0]`. */
function wordsOf(path: Path): string {
  if (path.length === 0) return 'the configuration'
  return path
    .map((step, i) => (/^\d+$/.test(String(step)) ? `[${step}]` : `${i === 0 ? '' : '.'}${step}`))
    .join('')
    .slice(0, 200)
}

/** Parts of the configuration where a secret may be in the wrong field by mistake. */
const SECRET_PARTS = ['auth', 'store']

const SHOWN = 40

/** Formats a value for a message: short, and without secrets. */
function shown(document: SourceDocument, path: Path, value: unknown, schema: SchemaPart = {}): string {
  if (value === null) return 'empty'
  if (Array.isArray(value)) return value.length === 0 ? 'an empty list' : 'a list'
  if (typeof value === 'object') return Object.keys(value).length === 0 ? 'an empty object' : 'an object'
  if (typeof value !== 'string') return String(value)
  const isSecret = schema.writeOnly === true || SECRET_PARTS.includes(String(path[0]))
  if (document.variableAt(path) !== undefined) return 'invalid (from a variable)'
  if (isSecret) return value === '' ? 'empty' : 'invalid (value hidden)'
  return JSON.stringify(value.length > SHOWN ? `${value.slice(0, SHOWN)}...` : value)
}
