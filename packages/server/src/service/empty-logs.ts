// Finds limits that lose their usage when the configuration or a key's plan changes.

import type { Limit } from 'slidegate'
import type { Config } from '../config/schema.ts'
import { type ByDimension, DeclaredLimiter } from './declared-limiter.ts'

/** Describes limits whose usage starts at zero after this change or a change of plan. */
export function emptyLogNotes(config: Config, before: Config | undefined): readonly string[] {
  return Object.entries(config.limiters).flatMap(([name, limiter]) => {
    const known = before?.limiters
    const old = known && Object.hasOwn(known, name) ? new DeclaredLimiter(name, known[name]!) : undefined
    return emptyLogNotesOf(new DeclaredLimiter(name, limiter), old)
  })
}

/** The notes for one limiter. */
export function emptyLogNotesOf(
  declared: DeclaredLimiter,
  before: DeclaredLimiter | undefined,
): readonly string[] {
  const { name, usual, plans, overrides } = declared
  const note = (limits: readonly string[], when: string): readonly string[] =>
    limits.length === 0
      ? []
      : [
          `limiter ${name}: the usage of ${limits.join(', ')} starts at zero ${when}. ` +
            'A limit keeps its usage if only its numbers change and its precision stays the same. Declare a precision for limits that may grow above 4,096',
        ]
  const changed = before && [
    ...note(startingEmpty(before.usual, usual), 'after this change'),
    ...Array.from(plans).flatMap(([plan, limits]) => {
      const known = before.plans.get(plan)
      return known === undefined
        ? []
        : note(startingEmpty(known, limits), `after this change, for keys on the plan ${plan}`)
    }),
    ...Array.from(overrides).flatMap(([word, limits]) => {
      const known = before.overrides.get(word)
      const key = (JSON.parse(word) as string[])[1]
      return known === undefined ? [] : note(missing(known, limits), `after this change, for the key ${key}`)
    }),
  ]
  const byPlan = Array.from(plans).flatMap(([plan, limits]) =>
    note(startingEmpty(usual, limits), `for keys that move to the plan ${plan}`),
  )
  return [...(changed ?? []), ...byPlan]
}

/** Names of the limits in `after` whose log isn't in `before`. If there are dimensions, a name is `dimension.name`. */
function startingEmpty(before: ByDimension, after: ByDimension): readonly string[] {
  return Array.from(after).flatMap(([dimension, limits]) =>
    missing(before.get(dimension) ?? [], limits).map((name) =>
      dimension === '' ? name : `${dimension}.${name}`,
    ),
  )
}

function missing(before: readonly Limit[], after: readonly Limit[]): readonly string[] {
  const known = logsOf(before)
  const logs = logsOf(after)
  return after.filter((_, i) => !known.includes(logs[i]!)).map(({ name }) => name)
}

/** Names of the logs that store the limits' usage. Logs that limits can't share are numbered. */
function logsOf(limits: readonly Limit[]): readonly string[] {
  const logs = limits.map((limit) => limit.kind.logName(limit) + (limit.shadow ? ` of ${limit.name}` : ''))
  return logs.map((log, i) =>
    limits[i]!.kind.isUnshared ? `${log} ${logs.slice(0, i).filter((each) => each === log).length}` : log,
  )
}
