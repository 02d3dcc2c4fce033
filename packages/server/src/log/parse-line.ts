import { accessLogParser } from './access-log.ts'
import { jsonLineParser, type ParseLine } from './json-line.ts'
import { MAX_LINE_CHARS } from './split-lines.ts'

export const LOG_FORMATS = ['auto', 'clf', 'json'] as const

export interface LineOptions {
  /** `clf` is the common and the combined format; `auto` reads lines that begin with a brace as JSON. */
  readonly format: (typeof LOG_FORMATS)[number]
  /** Whom the limits count: a field of access logs (see `ACCESS_LOG_KEYS`) or of JSON lines. */
  readonly key: string
  /** The field of JSON lines with the time. */
  readonly timeField: string
  /** The field of JSON lines with the units that a request takes; without one each takes 1, and captured requests what they took. */
  readonly costField?: string | undefined
}

/** The parser of one line. It never throws, and its reasons are few, so that they can be counted. */
export function lineParser({ format, key, timeField, costField }: LineOptions): ParseLine {
  const parseAccessLog = accessLogParser(key)
  const parseJson = jsonLineParser(key, timeField, costField)
  return (text) => {
    if (text.length > MAX_LINE_CHARS) return { bad: `longer than ${MAX_LINE_CHARS} characters` }
    if (!/\S/.test(text)) return { bad: 'empty line' }
    const isJson = format === 'auto' ? /^\s*\{/.test(text) : format === 'json'
    return isJson ? parseJson(text) : parseAccessLog(text)
  }
}
