// Parses a log line: common or combined format, or JSON. Also runs in browsers.

import { sha256 } from '@noble/hashes/sha2.js'
import { addressKey, UNKNOWN_ADDRESS } from 'slidegate/http'
import { detached, printable } from '../text.ts'
import { MAX_LINE_CHARS } from './split-lines.ts'
import { parseAccessLogTime, parseJsonTime } from './time.ts'

export const LOG_FORMATS = ['auto', 'clf', 'json'] as const

export interface LineOptions {
  /** `auto` detects JSON lines by their opening brace. `clf` is the common or combined format. */
  readonly format: (typeof LOG_FORMATS)[number]
  /** The field with the key: one of `ACCESS_LOG_KEYS`, or a field of JSON lines. */
  readonly key: string
  /** The field with the time, in JSON lines. */
  readonly timeField: string
  /** The field with the cost, in JSON lines. Default: 1; for captured requests, the recorded cost. */
  readonly costField?: string | undefined
}

/**
 * Returns a line parser, which never throws. It has only a few distinct reasons for skipping lines, so they can be counted.
 */
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

// host ident authuser [time] "request" status bytes "referer" "agent": the common format, which the combined one extends.
// Unused parts are optional, because servers may truncate lines. No two quantifiers compete for a character, so
// garbage fails in linear time.
const LINE = /^(\S+) \S+ (\S+) \[([^\]]{1,64})\](?: "([^"\\]*(?:\\.[^"\\]*)*))?(?:" (\d{3}))?/

const REQUEST = /^(\S+) (\S+)/

/** The values of `--key` for access logs. Each has a function that gets the key from the parts of a line. */
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

/** Accepts host names, which some servers log instead of addresses. */
function callerOf(host: string): string {
  const key = addressKey(host)
  return key === UNKNOWN_ADDRESS ? host : key
}

export const ACCESS_LOG_KEYS: readonly string[] = Object.keys(KEYS)

/** Parses lines in the common or combined format. */
function accessLogParser(key: string): ParseLine {
  const read = Object.hasOwn(KEYS, key) ? KEYS[key] : undefined
  const noKey =
    read === undefined ? `no such key: access logs have ${ACCESS_LOG_KEYS.join(', ')}` : `no ${key}`
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

/** A request, or the reason why a line has none. */
type ParsedLine =
  | {
      readonly timeMs: number
      readonly key: string
      /** Default: 1. */
      readonly cost?: number
      /** The limiter that decided on a captured request. */
      readonly limiter?: string
    }
  | { readonly bad: string }

export type ParseLine = (text: string) => ParsedLine

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

/** Fields of a request with a decision, from a capture or the decision log. */
function capturedIn(record: object): Captured | undefined {
  const source = 'decision' in record && isObject(record.decision) ? record.decision : record
  const { limiter, allowed, cost } = source as { limiter?: unknown; allowed?: unknown; cost?: unknown }
  const isCaptured = typeof limiter === 'string' && typeof allowed === 'boolean' && isCost(cost)
  return isCaptured ? { limiter, cost } : undefined
}

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

/** Returns the field with exactly this name, or else a nested field: `client.ip`. */
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
 * Copies a key out of its line. Replaces the end of a long key with a hash.
 *
 * A substring would keep the whole chunk of the file in memory. The hash bounds the size of the table of callers.
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

export interface LoggedRequest {
  readonly timeMs: number
  /** The key that the limits count by. */
  readonly key: string
  /** Units. Default: 1. */
  readonly cost?: number
  /** The line number, which orders requests with the same time. */
  readonly line: number
}

export interface BadLine {
  readonly line: number
  readonly reason: string
  /** The start of the line, safe to print. */
  readonly text: string
}

const SHOWN = 5

/** Skipped lines: their number, the reasons, and the first few lines. */
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
