import { printable } from '../text.ts'
import { detachedKey } from './key.ts'
import { parseJsonTime } from './time.ts'

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
export function jsonLineParser(keyField: string, timeField: string, costField?: string): ParseLine {
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
