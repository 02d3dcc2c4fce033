// Templates that contain values from a request, such as {header:x-api-key}.

import type { OriginalRequest } from './original-request.ts'

/** Reads the value of a placeholder. Undefined if the request has none. */
export type Value = (request: OriginalRequest) => string | undefined

export interface Template {
  /** The text. If a value is missing, the placeholder remains, so that all requests without the value share one key. */
  text(request: OriginalRequest): string
  /** The text. Undefined if a value is missing. @throws {ServiceError} `bad_gateway_request` for a repeated header */
  whole(request: OriginalRequest): string | undefined
}

const PLACEHOLDER = /\{([^{}]*)\}/
const NAMED = /^(header|cookie):([!#$%&'*+.^_`|~0-9A-Za-z-]+)$/
const KNOWN = '{address}, {host}, {path}, {method}, {header:<name>} or {cookie:<name>}'

/**
 * Compiles a template. Different values always produce different texts.
 *
 * To ensure this, separators between values are escaped within the values.
 *
 * @param problem called with each problem
 */
export function compileTemplate(
  source: string,
  addressOf: Value,
  problem: (message: string) => void,
): Template {
  // Pieces with odd indexes are the contents of placeholders.
  const pieces = source.split(PLACEHOLDER)
  const literals = pieces.filter((_, i) => i % 2 === 0)
  const names = pieces.filter((_, i) => i % 2 === 1)
  const values = names.map((name) => readerOf(name, addressOf))
  const headers = names.flatMap((name) => /^header:(.*)/.exec(name)?.[1]?.toLowerCase() ?? [])
  const unknown = names.find((_, i) => values[i] === undefined)
  const between = literals.slice(1, -1)
  if (unknown !== undefined) problem(`unknown placeholder {${unknown}}; expected one of ${KNOWN}`)
  if (/[{}]/.test(literals.join(''))) problem(`unmatched brace; write placeholders as ${KNOWN}`)
  if (between.includes('')) problem('two placeholders need a separator between them, such as a colon')
  const separators = new Set(['%', ...between.join('')])
  const escaped = (value: string, i: number) =>
    names.length === 1 || names[i] === 'address'
      ? value
      : Array.from(value, (c) => (separators.has(c) ? encoded(c) : c)).join('')
  const join = (request: OriginalRequest, missing: (name: string) => string | undefined) => {
    let text = literals[0]!
    for (let i = 0; i < names.length; i++) {
      const value = values[i]!(request)
      const part = value === undefined ? missing(names[i]!) : escaped(value, i)
      if (part === undefined) return undefined
      text += part + literals[i + 1]!
    }
    return text
  }
  return {
    text: (request) => join(request, (name) => `{${name}}`)!,
    whole: (request) => {
      for (const header of headers) request.gatewayHeader(header, '')
      return join(request, () => undefined)
    },
  }
}

function readerOf(name: string, addressOf: Value): Value | undefined {
  switch (name) {
    case 'address':
      return addressOf
    case 'host':
      return ({ host }) => host || undefined
    case 'path':
      return ({ path }) => path
    case 'method':
      return ({ method }) => method
  }
  const [, kind, field = ''] = NAMED.exec(name) ?? []
  if (kind === 'header') return (request) => request.header(field.toLowerCase())
  if (kind === 'cookie') return (request) => request.cookie(field)
  return undefined
}

function encoded(character: string): string {
  return Array.from(Buffer.from(character), (byte) => `%${byte.toString(16).padStart(2, '0')}`).join('')
}
