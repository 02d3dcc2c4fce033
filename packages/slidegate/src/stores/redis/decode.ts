import { StoreUnavailableError, show } from '../../errors.ts'
import type { Entry } from '../../limits/limit.ts'
import { type InForce, inForceAt, isReadable } from '../../limits/override.ts'
import type { ListedOverride, Outcome, OverridesOutcome, Part, RequestOp } from '../store.ts'
import { decisionOf } from './decode-decision.ts'
import type { Request } from './encode.ts'

// What main.lua answers. Its header has the same in its words.

/** What may stand in place of an op's first integer: see main.lua. */
const UNREADABLE = -1
const AHEAD = -2

/** In place of all that is answered: the call has come after a later one of its place. */
const STALE = -1

/** Reads a reply from its first integer on. */
class Reader {
  readonly #reply: unknown
  readonly #words: readonly unknown[]
  #place = 0

  constructor(reply: unknown) {
    this.#reply = reply
    this.#words = Array.isArray(reply) ? reply : []
  }

  readonly next = (): number => {
    // Some clients are set to hand out integers as text.
    const number = Number(this.#words[this.#place++])
    if (!Number.isSafeInteger(number)) throw this.unexpected()
    return number
  }

  /** Whether lines of text are next. */
  isText(): boolean {
    const next = this.#words[this.#place]
    return typeof next !== 'number' && String(next).endsWith('\n')
  }

  text(): string {
    return String(this.#words[this.#place++])
  }

  unexpected(): StoreUnavailableError {
    return new StoreUnavailableError('error', `Redis answered ${show(this.#reply)}`)
  }
}

/** Reads the outcomes off the reply, one per request and in their order. An error stands for the op that it befell. */
export function decode(
  requests: readonly Request[],
  reply: unknown,
  buckets = 1,
): (Outcome | StoreUnavailableError)[] {
  const reader = new Reader(reply)
  const serverMs = reader.next()
  if (serverMs === STALE)
    throw new StoreUnavailableError('timeout', 'a call has reached Redis when nobody waited for it any more')
  return requests.map((request) => outcomeOf(request, request.nowMs ?? serverMs, reader, buckets))
}

function outcomeOf(
  request: Request,
  clockMs: number,
  reader: Reader,
  buckets: number,
): Outcome | StoreUnavailableError {
  const { op } = request
  const { next } = reader
  if (op.type === 'reset') return undefined
  let atMs = clockMs
  let overrides: (InForce | undefined)[] | undefined
  if (reader.isText()) overrides = inForceOf(op.parts, reader.text(), clockMs)
  let first = next()
  if (first === AHEAD) {
    atMs += next()
    first = next()
  }
  if (first === UNREADABLE) {
    const reason = reader.text()
    const key = show(op.parts[0]!.key)
    return new StoreUnavailableError('state', `what is stored of ${key} cannot be used: ${reason}`)
  }
  switch (op.type) {
    case 'consume':
    case 'peek':
    case 'explain':
      return decisionOf(request as Request & { op: RequestOp }, first, clockMs, atMs, overrides, next)
    case 'refund':
      return { returned: unitsPerLog(op.parts, first, next) }
    case 'settle':
      return { settled: first === 1, returned: first === 1 ? unitsPerLog(op.parts, next(), next) : [] }
    case 'extend':
    case 'release':
      return { held: first === 1 }
    case 'list':
      return { lists: op.parts.flatMap(({ set }) => set.logs.map(() => entriesOf(reader.text()))) }
    case 'override':
      return { existed: first === 1 }
    case 'overrides':
      return overridesOf(reader.text(), clockMs, buckets)
    default:
      return undefined
  }
}

/** The override in force for each part, by the stored first lines. `undefined` if there is none. */
function inForceOf(
  parts: readonly Part[],
  stored: string,
  clockMs: number,
): (InForce | undefined)[] | undefined {
  const lines = stored.split('\n')
  const overrides = parts.map(({ set }) =>
    set.isOverridable ? inForceIn(`${lines.shift()}\n`, clockMs) : undefined,
  )
  return overrides.some((inForce) => inForce !== undefined) ? overrides : undefined
}

/** The parts of a stored override that are in force: see override.lua. */
function inForceIn(stored: string, clockMs: number): InForce | undefined {
  const [, blocked, ends, rule] = /^1 (\d+) (\d+) (.*)\n/.exec(stored) ?? []
  const [blockedUntilMs, endsAtMs] = [Number(blocked), Number(ends)]
  const areTimes = Number.isSafeInteger(blockedUntilMs) && Number.isSafeInteger(endsAtMs)
  if (!areTimes || rule === undefined || !isReadable(rule))
    throw new StoreUnavailableError('error', `Redis answered ${show(stored)}`)
  return inForceAt({ rule, endsAtMs, blockedUntilMs }, clockMs)
}

function unitsPerLog(parts: readonly Part[], first: number, next: () => number): number[] {
  return parts.flatMap(({ set }) => set.logs).map((_, i) => (i === 0 ? first : next()))
}

/** Reads a page from JSON. It has where the next begins, then the key and the stored text of each override. */
function overridesOf(json: string, clockMs: number, buckets: number): OverridesOutcome {
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

/** What a log keeps one by one: name, units, time. Where each unit stands alone, all but the first have a number behind a space. */
function entriesOf(json: string): Entry[] {
  const words: unknown = JSON.parse(json)
  // An empty table of Lua is an empty object.
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
