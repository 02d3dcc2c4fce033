// The JSON Schema of the configuration, for editors.

import { isObject } from '../is-object.ts'
import { ConfigSchema, LimitSchema } from './schema.ts'

type Json = Readonly<Record<string, unknown>>

const VARIABLE = { $ref: '#/$defs/variable' }

/** The JSON Schema of the file. Any value can also be an environment variable. */
export function publishedSchema(): Json {
  return {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    $id: 'urn:slidegate:config',
    title: 'slidegate',
    ...withMembers(plain(ConfigSchema)),
    $defs: {
      limit: withMembers(plain(LimitSchema)),
      variable: {
        type: 'string',
        pattern: '\\$\\{[A-Za-z_][A-Za-z0-9_]*(:-[^}]*)?\\}',
        title: 'text with environment variables',
      },
    },
  }
}

function plain(schema: object): Json {
  return JSON.parse(JSON.stringify(schema))
}

function published(schema: Json): Json {
  if (Array.isArray(schema.anyOf))
    return { ...withMembers(schema), anyOf: [...schema.anyOf.map(withMembers), VARIABLE] }
  if (!takesVariables(schema)) return withMembers(schema)
  const { description, writeOnly, ...own } = schema
  return {
    anyOf: [own, VARIABLE],
    ...(description !== undefined && { description }),
    ...(writeOnly !== undefined && { writeOnly }),
  }
}

/** Whether a schema needs an alternative for variables. Free-form strings accept variables anyway. */
function takesVariables({ type, pattern, minLength, enum: words }: Json): boolean {
  if (type === 'string') return pattern !== undefined || words !== undefined || Number(minLength ?? 0) > 1
  return words !== undefined || ['integer', 'number', 'boolean'].includes(String(type))
}

/** Returns a copy whose members also accept variables. */
function withMembers({ discriminator: _, $defs: __, ...schema }: Json): Json {
  const { properties, additionalProperties, items, oneOf, ...rest } = schema
  return {
    ...rest,
    ...(isObject(items) && { items: published(items) }),
    ...(isObject(properties) && { properties: mapped(properties) }),
    ...(additionalProperties !== undefined && {
      additionalProperties: isObject(additionalProperties)
        ? published(additionalProperties)
        : additionalProperties,
    }),
    ...(Array.isArray(oneOf) && { oneOf: oneOf.map(withMembers) }),
  }
}

/** Lets properties accept variables, except for constants, which distinguish the kinds of limits. */
function mapped(properties: Json): Json {
  return Object.fromEntries(
    Object.entries(properties).map(([name, schema]) => [
      name,
      (schema as Json).const === undefined ? published(schema as Json) : schema,
    ]),
  )
}
