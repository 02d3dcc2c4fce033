// Undoes a change from the audit log, unless something has changed since.

import { isDeepStrictEqual } from 'node:util'
import type { AnyKey } from 'slidegate'
import type { Service } from '../service/service.ts'
import { ServiceError } from '../service/service-error.ts'
import type { Admin } from './admin.ts'
import type { AuditEntry } from './api-types.ts'
import type { Change } from './audit-entry.ts'
import { changeWords, isShadow, type ShadowState, type State } from './change-words.ts'
import { isExpired, isSameState, type KeyState, keyStateOf, restoreState, withoutBans } from './key-state.ts'
import { ALL } from './shadow-switches.ts'

interface Operator {
  readonly who: string
  readonly reason?: string | undefined
}

/**
 * Undoes a change. The undo gets its own entry in the audit log.
 *
 * @returns the change in words
 * @throws {ServiceError} `not_undoable`, `changed_since`
 */
export async function undo(
  service: Service,
  admin: Admin,
  { entry, before: former, after }: Change,
  operator: Operator,
): Promise<string> {
  const { id, what, limiter, key } = entry
  if (!entry.canUndo || limiter === undefined || former === undefined || after === undefined) {
    throw new ServiceError(409, 'not_undoable', whyNot(entry))
  }
  const before = isShadow(former) || what === 'unblock' ? former : withoutBans(former)
  const { reader, limiter: changed } = service.get(limiter)
  const read = (): Promise<State> =>
    isShadow(before) ? shadowStateOf(admin, limiter) : keyStateOf(reader, key as AnyKey)
  const now = await read()
  mustBeAsLeft(before, after, now)
  const action = { ...operator, what: 'undo', limiter, detail: { what }, undoes: id }
  const restore = async (): Promise<void> => {
    if (isShadow(before)) await restoreShadow(admin, limiter, now as ShadowState, before)
    else await restoreState(changed, key as AnyKey, now as KeyState, before)
  }
  const acted = await admin.audit.act({ ...action, ...(key !== undefined && { key }) }, restore, read)
  if (!isShadow(before)) await admin.banRecorder.blocked({ ...operator, limiter, key: key as AnyKey })
  return changeWords(now, acted.after ?? before)
}

/** @throws {ServiceError} `changed_since`, `not_undoable` */
function mustBeAsLeft(before: State, after: State, now: State): void {
  const isKey = !isShadow(before) && !isShadow(after) && !isShadow(now)
  if (!(isKey ? isSameState(after, now) : isDeepStrictEqual(after, now))) {
    const changes = changeWords(after, now)
    throw new ServiceError(
      409,
      'changed_since',
      `a later change prevents this undo: ${changes}. Restore the previous state by hand`,
    )
  }
  if (isKey && isExpired(before, now)) {
    throw new ServiceError(409, 'not_undoable', 'the previous override or block would have expired by now')
  }
}

function whyNot({ what, result, isUndone, id }: AuditEntry): string {
  if (isUndone) return `change ${id} has already been undone`
  if (result !== 'done') return `change ${id} didn't succeed: its result is ${result}`
  return `change ${id} (${what}) can't be undone: it deleted data, or the audit log only has a hash of its key`
}

export async function shadowStateOf({ shadowSwitches }: Admin, limiter: string): Promise<ShadowState> {
  const settings = await shadowSwitches.read()
  return { shadow: { ...(Object.hasOwn(settings, limiter) && settings[limiter]) } }
}

async function restoreShadow(
  admin: Admin,
  limiter: string,
  { shadow: now }: ShadowState,
  { shadow: was }: ShadowState,
): Promise<void> {
  const set = (limit: string, shadow: boolean | null) => admin.shadowSwitches.set(limiter, limit, shadow)
  const isExtra = (limit: string) => !Object.hasOwn(was, limit)
  // `ALL` comes first, because removing its setting also removes the settings for single limits.
  if (Object.hasOwn(now, ALL) && isExtra(ALL)) await set(ALL, null)
  for (const limit of Object.keys(now)) if (limit !== ALL && isExtra(limit)) await set(limit, null)
  for (const [limit, shadow] of Object.entries(was)) await set(limit, shadow)
  await admin.applyShadowSwitches()
}
