// Checks limiters by creating them.

import { declarationOf, type Limit, limitOf, memoryStore, SlidegateError } from 'slidegate'
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
    const check = new LimiterCheck(checked, path, limiter)
    if (!check.isGood()) continue
    tried(checked, path, limiter, () => new DeclaredLimiter(name, limiter).limiter(store).close())
  }
}

/** Property names that every object has. Looking up such a name would find the inherited property. */
const EVERYWHERE: readonly string[] = Object.getOwnPropertyNames(Object.prototype)

function checkName({ complain }: Checked, path: Path): void {
  const name = path.at(-1)!
  if (EVERYWHERE.includes(String(name)))
    complain(path, `${name} is reserved: every JavaScript object has a property with this name`, 'key')
}

type SlidingWindow = Extract<LimitConfig, { kind: 'slidingWindow' }>

/** Checks a limiter's own limits, and those in its plans and overrides. */
class LimiterCheck {
  readonly #checked: Checked
  readonly #path: Path
  readonly #limiter: LimiterConfig
  #hasProblem = false

  constructor(checked: Checked, path: Path, limiter: LimiterConfig) {
    this.#checked = checked
    this.#path = path
    this.#limiter = limiter
  }

  isGood(): boolean {
    const { plans = {}, overrides, dimensions } = this.#limiter
    this.#rules(this.#limiter, [])
    const names = Object.keys(plans)
    for (const [name, plan] of Object.entries(plans)) {
      const path = ['plans', name]
      checkName(this.#checked, [...this.#path, ...path])
      if (names.length > 1 && /^\d+$/.test(name))
        this.#complain(
          path,
          'a plan name must not be a number: plans are tried in order, and JavaScript would move numbers to the front',
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
    for (const [i, override] of (overrides || []).entries()) {
      const { key, dimension } = override
      const path = ['overrides', i]
      this.#set(override, 'limits', path)
      if (dimension === undefined) {
        if (dimensions !== undefined)
          this.#complain(
            path,
            `dimension is missing; it must be one of ${Object.keys(dimensions).join(', ')}`,
          )
      } else this.#dimension(dimension, [...path, 'dimension'])
      const word = JSON.stringify([dimension, key])
      if (seen.has(word)) this.#complain([...path, 'key'], 'this key already has an override')
      seen.add(word)
    }
    return !this.#hasProblem
  }

  /** Requires exactly one of limits and dimensions. */
  #rules(rules: Pick<LimiterConfig, 'limits' | 'dimensions'>, path: Path): void {
    const { limits, dimensions } = rules
    if (limits === undefined && dimensions === undefined)
      this.#complain(path, 'limits are missing; set limits or dimensions', 'key')
    if (limits !== undefined && dimensions !== undefined)
      this.#complain(
        [...path, 'dimensions'],
        'both limits and dimensions are set; set only one of them',
        'key',
      )
    if (limits !== undefined) this.#set(rules, 'limits', path)
    for (const name of Object.keys(dimensions ?? {})) {
      checkName(this.#checked, [...this.#path, ...path, 'dimensions', name])
      this.#set(dimensions!, name, [...path, 'dimensions'])
    }
  }

  #dimension(name: string, path: Path): void {
    const { dimensions } = this.#limiter
    if (dimensions !== undefined && Object.hasOwn(dimensions, name)) return
    const known = Object.keys(dimensions ?? {})
    const right = known.length === 0 ? 'it has no dimensions' : suggestion(name, known)
    this.#complain(path, `unknown dimension ${name}; ${right}`)
  }

  /** Checks the limits in a field of `holder`, and replaces text with a list. */
  #set<Name extends string>(holder: { [Key in Name]?: LimitConfig[] }, name: Name, above: Path): void {
    const path = [...above, name]
    const given: unknown = holder[name]
    if (typeof given === 'string') {
      holder[name] = tried(this.#checked, [...this.#path, ...path], {}, () => listIn(given)) ?? []
      this.#hasProblem ||= holder[name].length === 0
    }
    const limits = holder[name] ?? []
    const names = new Set<string>()
    for (const [i, config] of limits.entries()) {
      const limit = this.#limit(config, [...path, i])
      if (limit === undefined) continue
      if (EVERYWHERE.includes(limit.name))
        checkName(this.#checked, [...this.#path, ...path, i, 'name', limit.name])
      if (names.has(limit.name))
        this.#complain(
          [...path, i],
          `two limits here have the name ${limit.name}; give one of them another name`,
        )
      names.add(limit.name)
    }
    const values = limits.findIndex(({ kind }) => kind === 'distinct')
    if (values < 0 || (limits.length === 1 && this.#limiter.dimensions === undefined)) return
    this.#complain(
      [...path, values],
      'a distinct limit needs a separate limiter, without other limits or dimensions; declare two limiters and call both',
    )
  }

  #limit(config: LimitConfig, path: Path): Limit | undefined {
    const limit = tried(this.#checked, [...this.#path, ...path], config, () => limitOf(config))
    if (limit === undefined) this.#hasProblem = true
    return limit
  }

  #complain(path: Path, message: string, at?: 'value' | 'key'): void {
    this.#hasProblem = true
    this.#checked.complain([...this.#path, ...path], message, at)
  }
}

/** Parses a list of limits such as `10/1s, hourly=600/1h` into declarations. */
function listIn(text: string): LimitConfig[] {
  return text.split(',').map((each) => {
    const { kind, name, limit, window } = declarationOf(limitOf(each)) as SlidingWindow
    return { kind, limit, window, ...(each.includes('=') && { name }) }
  })
}

/** Reports an error from the library at the option whose value was rejected. */
function tried<Value>(
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

/** Returns the path to a value in the options. */
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
