// Texts with values of a request in them: {header:x-api-key}.

import type { OriginalRequest } from './original-request.ts'

/** What a placeholder stands for; nothing where the request has none. */
export type Value = (request: OriginalRequest) => string | undefined

/** A text with values of a request in it. */
export interface Template {
  /** Each value that is missing is the placeholder itself: whoever leaves it out shares one key with all others who do. */
  text(request: OriginalRequest): string
  /** Nothing where any value is missing. @throws {ServiceError} `bad_gateway_request`, for a header that is there several times */
  whole(request: OriginalRequest): string | undefined
}

const PLACEHOLDER = /\{([^{}]*)\}/
const NAMED = /^(header|cookie):([!#$%&'*+.^_`|~0-9A-Za-z-]+)$/
const KNOWN = '{address}, {host}, {path}, {method}, {header:<name>} and {cookie:<name>}'

/**
 * Different values make different texts: where there are several, the characters between them are encoded within them.
 *
 * @param problem is told what is wrong, and what would be right
 */
export function compileTemplate(
  source: string,
  addressOf: Value,
  problem: (message: string) => void,
): Template {
  // Every other is the inside of a placeholder.
  const pieces = source.split(PLACEHOLDER)
  const literals = pieces.filter((_, i) => i % 2 === 0)
  const names = pieces.filter((_, i) => i % 2 === 1)
  const values = names.map((name) => readerOf(name, addressOf))
  const headers = names.flatMap((name) => /^header:(.*)/.exec(name)?.[1]?.toLowerCase() ?? [])
  const unknown = names.find((_, i) => values[i] === undefined)
  const between = literals.slice(1, -1)
  if (unknown !== undefined) problem(`{${unknown}} is not known; known are ${KNOWN}`)
  if (/[{}]/.test(literals.join(''))) problem(`a brace stands alone; known are ${KNOWN}`)
  if (between.includes('')) problem('there must be something between two values, such as a colon')
  const separators = new Set(['%', ...between.join('')])
  const spelt = (value: string, i: number) =>
    names.length === 1 || names[i] === 'address'
      ? value
      : Array.from(value, (c) => (separators.has(c) ? encoded(c) : c)).join('')
  const join = (request: OriginalRequest, missing: (name: string) => string | undefined) => {
    let text = literals[0]!
    for (let i = 0; i < names.length; i++) {
      const value = values[i]!(request)
      const part = value === undefined ? missing(names[i]!) : spelt(value, i)
      if (part === undefined) return undefined
      text += part + literals[i + 1]!
    }
    return text
  }
  return {
    text: (request) => join(request, (name) => `{${name}}`)!,
    whole: (request) => {
      for (const header of headers) request.told(header, '')
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
