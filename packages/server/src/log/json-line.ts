import { printable } from '../text.ts'
import { detachedKey } from './key.ts'
import type { ParseLine } from './parse-line.ts'
import { parseJsonTime } from './time.ts'

/** Reads lines of which each is a JSON object. */
export function jsonLineParser(keyField: string, timeField: string): ParseLine {
  const noTime = `no readable time in field "${printable(timeField)}"`
  const noKey = `no key in field "${printable(keyField)}"`
  return (text) => {
    const record = parseObject(text)
    if (record === undefined) return { bad: 'not a JSON object' }
    const timeMs = parseJsonTime(field(record, timeField))
    if (timeMs === undefined) return { bad: noTime }
    const value = field(record, keyField)
    const isKey =
      (typeof value === 'string' && value !== '') || typeof value === 'number' || typeof value === 'boolean'
    if (!isKey) return { bad: noKey }
    return { timeMs, key: detachedKey(`${value}`) }
  }
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
