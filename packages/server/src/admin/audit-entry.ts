// Reads an entry in the audit log from its records.

import { isObject } from '../is-object.ts'
import type { AuditEntry } from './api-types.ts'
import type { AuditRecord } from './audit-log.ts'
import { changeWords, lasting, type State } from './change-words.ts'
import { isConcealed, isCut } from './keys.ts'

/** An entry, with the states before and after the change if they are known. */
export interface Change {
  readonly entry: AuditEntry
  readonly before?: State
  readonly after?: State
}

/** Actions that can be undone. */
const UNDOABLE: readonly string[] = ['override', 'delete override', 'block', 'unblock', 'shadow']

/** Describes the change in words. Undefined if its details aren't known. */
function summaryOf(what: string, detail: object, before?: State, after?: State): string | undefined {
  if (before && after) return changeWords(before, after)
  const { drain, forMs, denials, withinMs } = detail as Readonly<Record<string, unknown>>
  if (what === 'drain') return drain === true ? 'on' : 'off'
  if (what !== 'ban' || typeof forMs !== 'number' || typeof withinMs !== 'number') return undefined
  return `for ${lasting(forMs)}, after ${denials} ${denials === 1 ? 'denial' : 'denials'} in ${lasting(withinMs)}`
}

/** Parses a record. Returns undefined for anything else that is in the stream. */
export function changeOf(id: string, record: AuditRecord, undone: ReadonlySet<string>): Change | undefined {
  const { who, what, limiter, key, detail, reason, undoes, instance, result, error } = record
  if (who === undefined || what === undefined || instance === undefined) return undefined
  try {
    const [before, after] = [statesIn(record.before), statesIn(record.after)]
    const isDone = result === 'done'
    const details = detail === undefined ? undefined : objectIn(JSON.parse(detail))
    const summary = summaryOf(what, details ?? {}, before, after)
    const keys = key === undefined ? undefined : keyIn(JSON.parse(key))
    const entry: AuditEntry = {
      ...{ id, atMs: Number.parseInt(id, 10), who, what },
      ...(limiter !== undefined && { limiter }),
      ...(keys !== undefined && { key: keys }),
      ...(details !== undefined && { detail: details }),
      ...(summary !== undefined && { summary }),
      ...(reason !== undefined && { reason }),
      ...(undoes !== undefined && { undoes }),
      instance,
      result: isDone || result === 'failed' ? result : 'unknown',
      ...(error !== undefined && { error }),
      isUndone: undone.has(id),
      canUndo:
        isDone &&
        UNDOABLE.includes(what) &&
        before !== undefined &&
        after !== undefined &&
        (keys === undefined || isWhole(keys)) &&
        !undone.has(id),
    }
    return { entry, ...(before && { before }), ...(after && { after }) }
  } catch {
    return undefined
  }
}

/** Whether the key is neither shortened nor hashed. */
function isWhole(key: NonNullable<AuditEntry['key']>): boolean {
  const keys = typeof key === 'string' ? [key] : Object.values(key)
  return !keys.some((each) => isConcealed(each) || isCut(each))
}

/** Parses states without validating them, because only this service writes them. */
function statesIn(text: string | undefined): State | undefined {
  return text === undefined ? undefined : (objectIn(JSON.parse(text)) as State)
}

function keyIn(value: unknown): NonNullable<AuditEntry['key']> {
  if (typeof value === 'string') return value
  const key = objectIn(value)
  if (Object.values(key).every((each) => typeof each === 'string')) return key as Record<string, string>
  throw new TypeError('not a key')
}

function objectIn(value: unknown): object {
  if (isObject(value)) return value
  throw new TypeError('not an object')
}
