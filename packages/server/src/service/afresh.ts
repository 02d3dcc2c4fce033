// Limits that begin with an empty log when they take the place of others: a log is named by the structure of its limits.

import type { Limit } from 'slidegate'
import type { Config } from '../config/schema.ts'
import { type ByDimension, DeclaredLimiter } from './declared-limiter.ts'

/** A line for each limiter whose limits begin with an empty log, by this change or for keys that change their plan. */
export function afreshNotes(config: Config, before: Config | undefined): readonly string[] {
  return Object.entries(config.limiters).flatMap(([name, limiter]) => {
    const known = before?.limiters
    const old = known && Object.hasOwn(known, name) ? new DeclaredLimiter(name, known[name]!) : undefined
    return notesOn(new DeclaredLimiter(name, limiter), old)
  })
}

/** The same of one limiter. */
export function notesOn(declared: DeclaredLimiter, before: DeclaredLimiter | undefined): readonly string[] {
  const { name, usual, plans, hasDimensions } = declared
  const note = (limits: readonly string[], when: string): readonly string[] =>
    limits.length === 0
      ? []
      : [
          `limiter ${name}: ${limits.join(', ')} ${limits.length === 1 ? 'begins' : 'begin'} with an empty log ${when}. ` +
            'A log is kept if only numbers change and the precision stays: declare one where a limit may grow above 4,096',
        ]
  return [
    ...(before?.hasDimensions === hasDimensions ? note(afresh(before.usual, usual), 'by this change') : []),
    ...Array.from(plans).flatMap(([plan, limits]) =>
      note(afresh(usual, limits), `for keys that change to the plan ${plan}`),
    ),
  ]
}

/** Names of limits that find no log of those before; `dimension.name` where there are dimensions. */
function afresh(before: ByDimension, after: ByDimension): readonly string[] {
  return Array.from(after).flatMap(([dimension, limits]) => {
    const known = before.get(dimension)?.map(logOf)
    if (known === undefined) return []
    const found = limits.filter((limit) => !known.includes(logOf(limit)))
    return found.map(({ name }) => (dimension === '' ? name : `${dimension}.${name}`))
  })
}

function logOf(limit: Limit): string {
  return limit.kind.logName(limit) + (limit.shadow ? ` of ${limit.name}` : '')
}
