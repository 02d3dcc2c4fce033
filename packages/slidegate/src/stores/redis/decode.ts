// Reads the script's reply, which driver.lua describes.

import { StoreUnavailableError, show } from '../../errors.ts'
import type { Entry } from '../../limits/limit.ts'
import { type InForce, inForceAt, isReadable } from '../../limits/override.ts'
import type { Reply } from '../../ops/op.ts'
import type {
  ConsumeOutcome,
  ExplainOutcome,
  ListedOverride,
  Overrides,
  OverridesOutcome,
  Part,
} from '../../ops/request.ts'
import { kindOf, type Outcome } from '../../ops/table.ts'
import { logsOf } from '../outcome.ts'
import { type DecisionRequest, decisionOf } from './decode-decision.ts'
import type { Request } from './encode.ts'

/** Values that replace an op's first integer: see driver.lua. */
const UNREADABLE = -1
const AHEAD = -2

/** The reply to a call that arrived after a later call with the same `place`. */
const STALE = -1

/** Returns the requests' outcomes, in order. If an op's state was unreadable, there is an error in its place. */
export function decode(
  requests: readonly Request[],
  reply: unknown,
  buckets = 1,
): (Outcome | StoreUnavailableError)[] {
  try {
    reader.open(reply, buckets)
    return requests.map(reader.outcomeOf)
  } finally {
    reader.close()
  }
}

class ScriptReply implements Reply {
  #reply: unknown
  #words: readonly unknown[] = []
  #buckets = 1
  #serverMs = 0
  #place = 0
  // The current request, the time by the clock, and the time at which the request was decided.
  #request: Request | undefined
  #clockMs = 0
  #nowMs = 0
  #overrides: Overrides

  open(reply: unknown, buckets: number): void {
    this.#reply = reply
    this.#words = Array.isArray(reply) ? reply : []
    this.#buckets = buckets
    this.#place = 0
    this.#serverMs = this.#next()
    if (this.#serverMs === STALE)
      throw new StoreUnavailableError('timeout', 'a call reached Redis after all its requests had timed out')
  }

  /** Releases the last request, which would otherwise keep its caller's async context alive. */
  close(): void {
    this.#reply = undefined
    this.#words = []
    this.#request = undefined
  }

  readonly outcomeOf = (request: Request): Outcome | StoreUnavailableError => {
    const { op, nowMs = this.#serverMs } = request
    const kind = kindOf(op)
    // The script returns nothing for these ops.
    if (kind.answer === undefined && kind.encode === undefined) return undefined
    this.#request = request
    this.#clockMs = nowMs
    this.#nowMs = nowMs
    this.#overrides = this.#isText() ? inForceOf(op.parts, this.#text(), nowMs) : undefined
    let first = this.#next()
    if (first === AHEAD) {
      this.#nowMs += this.#next()
      first = this.#next()
    }
    if (first === UNREADABLE) {
      const message = `the stored state of ${show(op.parts[0]!.key)} cannot be used: ${this.#text()}`
      return new StoreUnavailableError('invalid_state', message)
    }
    if (kind.answer === undefined) return undefined
    this.#place--
    return kind.answer(this)
  }

  flag(): boolean {
    return this.#next() === 1
  }

  unitsPerLog(_: string, areThere = true): readonly number[] {
    return areThere ? logsOf(this.#request!.op.parts).map(this.#next) : []
  }

  entriesPerLog(): readonly (readonly Entry[])[] {
    this.#next()
    return logsOf(this.#request!.op.parts).map(() => entriesOf(this.#text()))
  }

  decision(): ConsumeOutcome {
    const request = this.#request as DecisionRequest
    return decisionOf(request, this.#clockMs, this.#nowMs, this.#overrides, this.#next)
  }

  explanation(): ExplainOutcome {
    return this.decision() as ExplainOutcome
  }

  page(): OverridesOutcome {
    this.#next()
    return pageOf(this.#text(), this.#clockMs, this.#buckets)
  }

  readonly #next = (): number => {
    // Some clients return integers as strings.
    const number = Number(this.#words[this.#place++])
    if (Number.isSafeInteger(number)) return number
    throw new StoreUnavailableError('error', `unexpected reply from Redis: ${show(this.#reply)}`)
  }

  #isText(): boolean {
    const next = this.#words[this.#place]
    return typeof next !== 'number' && String(next).endsWith('\n')
  }

  #text(): string {
    return String(this.#words[this.#place++])
  }
}

const reader = new ScriptReply()

/** Reads the override in force for each part. `stored` has the first line of each stored override. */
function inForceOf(parts: readonly Part[], stored: string, clockMs: number): Overrides {
  const lines = stored.split('\n')
  const overrides = parts.map(({ set }) =>
    set.isOverridable ? inForceIn(`${lines.shift()}\n`, clockMs) : undefined,
  )
  return overrides.some((inForce) => inForce !== undefined) ? overrides : undefined
}

/** Reads a stored override: see override.lua. */
function inForceIn(stored: string, clockMs: number): InForce | undefined {
  const [, blocked, ends, rule] = /^1 (\d+) (\d+) (.*)\n/.exec(stored) ?? []
  const [blockedUntilMs, endsAtMs] = [Number(blocked), Number(ends)]
  const areTimes = Number.isSafeInteger(blockedUntilMs) && Number.isSafeInteger(endsAtMs)
  if (!areTimes || rule === undefined || !isReadable(rule))
    throw new StoreUnavailableError('error', `unexpected reply from Redis: ${show(stored)}`)
  return inForceAt({ rule, endsAtMs, blockedUntilMs }, clockMs)
}

/** Reads a page of overrides. Its first item is the cursor for the next page; each override's key and stored text follow. */
function pageOf(json: string, clockMs: number, buckets: number): OverridesOutcome {
  const [next = '', ...words] = (JSON.parse(json) as unknown[]).map(String)
  const overrides: ListedOverride[] = []
  for (let i = 0; i < words.length; i += 2) {
    const [key, stored] = [words[i]!, words[i + 1]!]
    const inForce = inForceIn(stored, clockMs)
    const given = stored.slice(stored.indexOf('\n') + 1)
    if (inForce !== undefined) overrides.push({ key, ...(given !== '' && { given }), ...inForce })
  }
  return { overrides, ...(next !== '' && { next }), buckets }
}

/** Reads each entry's name, units and time. If units are stored separately, the second unit of `id` is named `id 2`. */
function entriesOf(json: string): Entry[] {
  const words: unknown = JSON.parse(json)
  // An empty Lua table becomes an empty object.
  const flat: readonly string[] = Array.isArray(words) ? words : []
  const entries: { name: string; units: number; atMs: number }[] = []
  const places = new Map<string, number>()
  for (let i = 0; i < flat.length; i += 3) {
    const [name = '', isMore] = flat[i]!.split(' ', 2)
    const units = Number(flat[i + 1])
    const first = isMore === undefined ? undefined : places.get(name)
    if (first !== undefined) entries[first]!.units += units
    else places.set(name, entries.push({ name, units, atMs: Number(flat[i + 2]) }) - 1)
  }
  return entries
}
