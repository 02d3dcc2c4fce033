// Describes a validation error in a sentence.

import type { FastifySchemaValidationError } from 'fastify/types/schema.js'
import { ServiceError } from '../service/service-error.ts'

/** Describes the error in a body or query. For a union, uses the member that the value fits best. */
export function validationError(
  errors: readonly FastifySchemaValidationError[],
  where: string,
): ServiceError {
  const found = errors.filter(({ keyword }) => keyword !== 'anyOf' && keyword !== 'oneOf')
  const depth = Math.max(...found.map(depthOf))
  const deepest = found.filter((error) => depthOf(error) === depth)
  // Prefers errors about fields that are present: a missing field may belong to another member of the union.
  const first = deepest.find(({ keyword }) => keyword !== 'required') ?? deepest[0] ?? errors[0]!
  const types = deepest.filter(
    ({ keyword, instancePath }) => keyword === 'type' && instancePath === first.instancePath,
  )
  const sentence = first.keyword === 'type' ? typeSentence(types) : sentenceOf(first)
  return new ServiceError(400, 'invalid_request', `${placeOf(first.instancePath, where)} ${sentence}`)
}

function depthOf({ instancePath }: FastifySchemaValidationError): number {
  return instancePath.split('/').length
}

function typeSentence(errors: readonly FastifySchemaValidationError[]): string {
  const types = new Set(errors.flatMap(({ params }) => params.type as string | string[]))
  return `must be ${Array.from(types, (type) => TYPES[type] ?? type).join(' or ')}`
}

const TYPES: Readonly<Record<string, string>> = {
  array: 'an array',
  boolean: 'true or false',
  integer: 'an integer',
  number: 'a number',
  object: 'an object',
  string: 'a string',
}

function sentenceOf({ keyword, params, message }: FastifySchemaValidationError): string {
  switch (keyword) {
    case 'required':
      return `has no ${shown(params.missingProperty)}`
    case 'additionalProperties':
      return `has the unknown field ${shown(params.additionalProperty)}`
    case 'enum':
      return `must be one of ${(params.allowedValues as unknown[]).map((value) => JSON.stringify(value)).join(', ')}`
    case 'const':
      return `must be ${JSON.stringify(params.allowedValue)}`
    default:
      return message ?? 'is invalid'
  }
}

/** Turns `/requests/3/cost` into `requests[3].cost`. */
function placeOf(path: string, where: string): string {
  if (path === '') return `the ${where}`
  const names = path
    .slice(1)
    .split('/')
    .map((name) => name.replaceAll('~1', '/').replaceAll('~0', '~'))
  return names
    .map((name, i) => (/^\d+$/.test(name) ? `[${name}]` : `${i > 0 ? '.' : ''}${name.slice(0, SHOWN)}`))
    .join('')
}

function shown(name: unknown): string {
  return JSON.stringify(String(name).slice(0, SHOWN))
}

const SHOWN = 64
