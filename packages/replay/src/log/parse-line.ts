// Reads a line of a log as a request: of the common and the combined format, or of JSON. Runs in browsers, too.

import { sha256 } from '@noble/hashes/sha2.js'
import { addressKey, UNKNOWN_ADDRESS } from 'slidegate/http'
import { detached, printable } from '../text.ts'
import { MAX_LINE_CHARS } from './split-lines.ts'
import { parseAccessLogTime, parseJsonTime } from './time.ts'

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

// host ident authuser [time] "request" status bytes "referer" "agent": the common format, which the combined
// one continues. Only what is needed has to be there, for servers cut lines short. The quantifiers cannot
// compete for the same character, so garbage is refused in linear time.
const LINE = /^(\S+) \S+ (\S+) \[([^\]]{1,64})\](?: "([^"\\]*(?:\\.[^"\\]*)*))?(?:" (\d{3}))?/

const REQUEST = /^(\S+) (\S+)/

/** What `--key` can be for access logs, and how it is read: from host, authuser, request and status. */
const KEYS: Record<
  string,
  (host: string, user: string, request: string, status: string) => string | undefined
> = {
  ip: callerOf,
  user: (_host, user) => user,
  method: (_host, _user, request) => REQUEST.exec(request)?.[1],
  path: (_host, _user, request) => REQUEST.exec(request)?.[2]?.split('?', 1)[0],
  status: (_host, _user, _request, status) => status,
}

/** Servers that look names up write them in place of addresses. */
function callerOf(host: string): string {
  const key = addressKey(host)
  return key === UNKNOWN_ADDRESS ? host : key
}

export const ACCESS_LOG_KEYS: readonly string[] = Object.keys(KEYS)

/** Reads lines of the common and the combined log format. */
function accessLogParser(key: string): ParseLine {
  const read = Object.hasOwn(KEYS, key) ? KEYS[key] : undefined
  const noKey = read === undefined ? `no key: access logs have ${ACCESS_LOG_KEYS.join(', ')}` : `no ${key}`
  return (text) => {
    const match = LINE.exec(text)
    if (match === null) return { bad: 'neither an access log line nor a JSON object' }
    const [, host = '', user = '', time = '', request = '', status = ''] = match
    const timeMs = parseAccessLogTime(time)
    if (timeMs === undefined) return { bad: 'no readable time' }
    const value = read?.(host, user, request, status)
    if (value === undefined || value === '' || value === '-') return { bad: noKey }
    return { timeMs, key: detachedKey(value) }
  }
}

/** A request as a line of a log tells of it, or why the line tells of none. */
type ParsedLine =
  | {
      readonly timeMs: number
      readonly key: string
      /** Where the line tells it; else it is 1. */
      readonly cost?: number
      /** Of a request that the service has captured: which limiter has decided it. */
      readonly limiter?: string
    }
  | { readonly bad: string }

export type ParseLine = (text: string) => ParsedLine

/** Reads lines of which each is a JSON object. */
function jsonLineParser(keyField: string, timeField: string, costField?: string): ParseLine {
  const noTime = `no readable time in field "${printable(timeField)}"`
  const noKey = `no key in field "${printable(keyField)}"`
  const noCost = `no cost in field "${printable(costField ?? '')}"`
  return (text) => {
    const record = parseObject(text)
    if (record === undefined) return { bad: 'not a JSON object' }
    const timeMs = parseJsonTime(field(record, timeField))
    if (timeMs === undefined) return { bad: noTime }
    const value = field(record, keyField)
    const isKey =
      (typeof value === 'string' && value !== '') || typeof value === 'number' || typeof value === 'boolean'
    if (!isKey) return { bad: noKey }
    const request = { timeMs, key: detachedKey(`${value}`) }
    const captured = capturedIn(record)
    if (costField === undefined && captured === undefined) return request
    const cost = costField === undefined ? captured?.cost : field(record, costField)
    if (!isCost(cost)) return { bad: noCost }
    return { ...request, cost, ...(captured && { limiter: detachedKey(captured.limiter) }) }
  }
}

interface Captured {
  readonly limiter: string
  readonly cost: number
}

/** What the service has written of a request that it has decided: as a capture has it, or the log of decisions. */
function capturedIn(record: object): Captured | undefined {
  const told = 'decision' in record && isObject(record.decision) ? record.decision : record
  const { limiter, allowed, cost } = told as { limiter?: unknown; allowed?: unknown; cost?: unknown }
  const isCaptured = typeof limiter === 'string' && typeof allowed === 'boolean' && isCost(cost)
  return isCaptured ? { limiter, cost } : undefined
}

/** The most that a request may take. */
const MAX_COST = 2 ** 40

function isCost(value: unknown): value is number {
  return Number.isInteger(value) && (value as number) >= 1 && (value as number) <= MAX_COST
}

function parseObject(text: string): object | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return isObject(value) ? value : undefined
  } catch {
    return undefined
  }
}

/** The field of that very name, else, where it has dots, of the objects within: `client.ip`. */
function field(record: object, name: string): unknown {
  if (Object.hasOwn(record, name)) return Reflect.get(record, name)
  return name.split('.').reduce<unknown>((value, part) => {
    return isObject(value) && Object.hasOwn(value, part) ? Reflect.get(value, part) : undefined
  }, record)
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null
}

const MAX_KEY_CHARS = 256

/**
 * A key cut out of a line, as a string of its own: what JavaScript cuts out of a string keeps all of it in
 * memory, and with it the whole chunk of the file. Very long ones are told apart by a hash, so that a log
 * cannot make a table of callers arbitrarily large.
 */
function detachedKey(text: string): string {
  if (text.length <= MAX_KEY_CHARS) return detached(text.toWellFormed())
  return `${detached(text.slice(0, 64).toWellFormed())}~${base64url(sha256(new TextEncoder().encode(text)))}`
}

function base64url(bytes: Uint8Array): string {
  return btoa(String.fromCharCode(...bytes))
    .replaceAll('+', '-')
    .replaceAll('/', '_')
    .replace(/=+$/, '')
}

/** A request that a log tells of. */
export interface LoggedRequest {
  readonly timeMs: number
  /** Whom the limits count. */
  readonly key: string
  /** Units; 1 unless told. */
  readonly cost?: number
  /** Where it stands in the log; requests of the same time are decided in this order. */
  readonly line: number
}

export interface BadLine {
  readonly line: number
  readonly reason: string
  /** Its beginning, harmless to print. */
  readonly text: string
}

const SHOWN = 5

/** The lines that no request came of: how many, why, and the first few of them. */
export class Skipped {
  count = 0
  readonly reasons: Map<string, number> = new Map()
  readonly first: BadLine[] = []

  add(line: number, reason: string, text: string): void {
    this.count++
    this.reasons.set(reason, (this.reasons.get(reason) ?? 0) + 1)
    if (this.first.length < SHOWN) this.first.push({ line, reason, text: printable(text) })
  }
}
