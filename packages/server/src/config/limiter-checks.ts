// Checks limiters, by making them.

import { type Limit, limitOf, memoryStore, SlidegateError } from 'slidegate'
import { DeclaredLimiter } from '../service/declared-limiter.ts'
import type { Checked } from './checks.ts'
import type { Path } from './reader.ts'
import type { LimitConfig, LimiterConfig } from './schema.ts'
import { suggestion } from './suggestion.ts'

export function checkLimiters(checked: Checked): void {
  const { config, isSound } = checked
  const store = memoryStore({ maxKeys: 1 })
  for (const [name, limiter] of Object.entries(config.limiters)) {
    const path = ['limiters', name]
    checkName(checked, path)
    if (!isSound(path)) continue
    const limits = new LimiterCheck(checked, path, limiter)
    if (!limits.areGood()) continue
    told(checked, path, limiter, () => new DeclaredLimiter(name, limiter).limiter(store).close())
  }
}

/** What all objects have: where one is asked for by such a name, something is found that nobody has put there. */
const EVERYWHERE: readonly string[] = Object.getOwnPropertyNames(Object.prototype)

function checkName({ complain }: Checked, path: Path): void {
  const name = path.at(-1)!
  if (EVERYWHERE.includes(String(name)))
    complain(path, `${name} cannot be a name: all objects of JavaScript have it`, 'key')
}

/** All sets of limits of one limiter. */
class LimiterCheck {
  readonly #checked: Checked
  readonly #path: Path
  readonly #limiter: LimiterConfig
  #isGood = true

  constructor(checked: Checked, path: Path, limiter: LimiterConfig) {
    this.#checked = checked
    this.#path = path
    this.#limiter = limiter
  }

  areGood(): boolean {
    const { plans = {}, overrides, dimensions } = this.#limiter
    this.#rules(this.#limiter, [])
    const names = Object.keys(plans)
    for (const [name, plan] of Object.entries(plans)) {
      const path = ['plans', name]
      checkName(this.#checked, [...this.#path, ...path])
      if (names.length > 1 && /^\d+$/.test(name))
        this.#complain(
          path,
          'a plan cannot be called by a number: they are tried in order, and numbers would come first',
          'key',
        )
      this.#rules(plan, path)
      if (plan.limits !== undefined && dimensions !== undefined)
        this.#complain(
          [...path, 'limits'],
          'the limiter has dimensions, so its plans must have dimensions, too',
          'key',
        )
      if (plan.dimensions !== undefined && dimensions === undefined)
        this.#complain(
          [...path, 'dimensions'],
          'the limiter has limits, so its plans must have limits, too',
          'key',
        )
      for (const dimension of Object.keys(plan.dimensions ?? {}))
        this.#dimension(dimension, [...path, 'dimensions', dimension])
    }
    const seen = new Set<string>()
    for (const [i, { key, dimension, limits }] of (overrides || []).entries()) {
      const path = ['overrides', i]
      this.#set(limits, [...path, 'limits'])
      if (dimension === undefined) {
        if (dimensions !== undefined)
          this.#complain(path, `there must be a dimension: ${Object.keys(dimensions).join(', ')}`)
      } else this.#dimension(dimension, [...path, 'dimension'])
      const word = JSON.stringify([dimension, key])
      if (seen.has(word)) this.#complain([...path, 'key'], 'this key has an override already')
      seen.add(word)
    }
    return this.#isGood
  }

  /** Exactly one of limits and dimensions. */
  #rules({ limits, dimensions }: Pick<LimiterConfig, 'limits' | 'dimensions'>, path: Path): void {
    if (limits === undefined && dimensions === undefined)
      this.#complain(path, 'there must be limits, or dimensions with limits', 'key')
    if (limits !== undefined && dimensions !== undefined)
      this.#complain(
        [...path, 'dimensions'],
        'there are limits already; there must be one of limits and dimensions',
        'key',
      )
    if (limits !== undefined) this.#set(limits, [...path, 'limits'])
    for (const [name, each] of Object.entries(dimensions ?? {})) {
      checkName(this.#checked, [...this.#path, ...path, 'dimensions', name])
      this.#set(each, [...path, 'dimensions', name])
    }
  }

  #dimension(name: string, path: Path): void {
    const { dimensions } = this.#limiter
    if (dimensions !== undefined && Object.hasOwn(dimensions, name)) return
    const known = Object.keys(dimensions ?? {})
    const right = known.length === 0 ? 'it has none' : suggestion(name, known)
    this.#complain(path, `the limiter has no dimension ${name}; ${right}`)
  }

  #set(limits: readonly LimitConfig[], path: Path): void {
    const names = new Set<string>()
    for (const [i, config] of limits.entries()) {
      const limit = this.#limit(config, [...path, i])
      if (limit === undefined) continue
      if (EVERYWHERE.includes(limit.name))
        checkName(this.#checked, [...this.#path, ...path, i, 'name', limit.name])
      if (names.has(limit.name))
        this.#complain(
          [...path, i],
          `two limits here are called ${limit.name}; one of them must have a name of its own`,
        )
      names.add(limit.name)
    }
    const values = limits.findIndex(({ kind }) => kind === 'distinct')
    if (values < 0 || (limits.length === 1 && this.#limiter.dimensions === undefined)) return
    this.#complain(
      [...path, values],
      'a distinct limit needs a limiter of its own, without other limits or dimensions; make two limiters, and ask both',
    )
  }

  #limit(config: LimitConfig, path: Path): Limit | undefined {
    const limit = told(this.#checked, [...this.#path, ...path], config, () => limitOf(config))
    if (limit === undefined) this.#isGood = false
    return limit
  }

  #complain(path: Path, message: string, at?: 'value' | 'key'): void {
    this.#isGood = false
    this.#checked.complain([...this.#path, ...path], message, at)
  }
}

/** Complains of what the library refuses, at the option that it names. */
function told<Value>(
  { complain }: Checked,
  path: Path,
  options: object,
  make: () => Value,
): Value | undefined {
  try {
    return make()
  } catch (error) {
    if (!(error instanceof SlidegateError)) throw error
    complain([...path, ...placeOf(error.value, options)], error.message)
    return undefined
  }
}

/** Where among options a value is. */
function placeOf(value: unknown, options: object): Path {
  if (value === undefined || typeof value === 'object') return []
  for (const [name, option] of Object.entries(options)) {
    if (option === value) return [name]
    const isInside = typeof option === 'object' && option !== null && ['ban', 'breaker', 'for'].includes(name)
    const inside = isInside ? placeOf(value, option) : []
    if (inside.length > 0) return [name, ...inside]
  }
  return []
}
