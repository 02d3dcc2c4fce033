import { StoreUnavailableError, show } from '../../errors.ts'
import type { BanState, Charged, Entry, LogParams } from '../../limits/limit.ts'
import type { LimitSet, Log } from '../../limits/limit-set.ts'
import { type InForce, isReadable, mostOf, namesOf } from '../../limits/override.ts'
import {
  type Ban,
  banOf,
  type ConsumeOp,
  type ConsumeOutcome,
  debitsOf,
  type ExplainOp,
  type ExplainOutcome,
  type HoldOp,
  type ListedOverride,
  type Named,
  type Op,
  type Outcome,
  type OverridesOutcome,
  type Part,
  type PeekOp,
  partsInForce,
  type RequestOp,
  takesOnce,
} from '../store.ts'

// What main.lua is given and what it answers; its header has the same in its words.

/** An op with what its call needs. */
export interface Request {
  readonly op: Op
  /** The time, where it is not the server's. */
  readonly nowMs: number | undefined
  /** Requests to be decided by a consume op: its own count, or that of the equal ones that have joined it. */
  readonly count: number
}

/** What the script is given as the time where the server's counts. */
const SERVERS_OWN = -1

/** The waits that the script writes as -1: for ever. */
const NEVER = -1

/** What may stand in place of an op's first integer: see main.lua. */
const UNREADABLE = -1
const AHEAD = -2
const AGAIN = -3
const BLOCKED = -4
const BANNED = -5
const OVERRIDDEN = -6

/** In place of all that is answered: the call has come after a later one of its place. */
const STALE = -1

/** The script's arguments: after the words of a receipt, if any, runs of neighbours that differ in little but their keys. */
export function encode(requests: readonly Request[], receipt: readonly string[] = []): string[] {
  const words = [...receipt]
  for (let first = 0; first < requests.length; ) {
    const { nowMs = SERVERS_OWN } = requests[first]!
    words.push(`${nowMs}`)
    if (isUsual(requests[first]!)) {
      words.push(...usualWords(requests[first]!))
      first = encodeGroups(requests, first, words)
    } else {
      words.push('0', jsonOf(requests[first]!))
      first = encodeRun(requests, first, words)
    }
  }
  return words
}

/** Writes what tells those that follow from the first, which has been written: how many there are, and their names. */
function encodeRun(requests: readonly Request[], first: number, words: string[]): number {
  const place = words.push('') - 1
  let next = first
  do {
    const { requestId } = requests[next]!.op as Named
    if (requestId !== undefined) words.push(requestId)
    next++
  } while (next < requests.length && differInNames(requests[next]!, requests[first]!))
  words[place] = `${next - first}`
  return next
}

/** Whether two requests of the unusual kind differ in nothing but their keys and ids. */
function differInNames(a: Request, b: Request): boolean {
  const [one, other] = [a.op, b.op]
  if (a.count !== b.count || a.nowMs !== b.nowMs || !isAskedAlike(one, other)) return false
  if (one.parts.length !== other.parts.length) return false
  if (!one.parts.every(({ set }, i) => set === other.parts[i]!.set)) return false
  const [ours, theirs] = [one as Named, other as Named]
  return (
    (ours.requestId === undefined) === (theirs.requestId === undefined) &&
    ours.mayRepeat === theirs.mayRepeat &&
    !isUsual(a)
  )
}

/** Whether both ask for the same; of what is asked seldom it is not looked into. */
function isAskedAlike(one: Op, other: Op): boolean {
  if (one.type !== other.type) return false
  switch (one.type) {
    case 'consume': {
      const { cost, leaseMs } = other as ConsumeOp
      return (
        one.cost === cost && one.leaseMs === leaseMs && !isPersonal(one) && !isPersonal(other as ConsumeOp)
      )
    }
    case 'peek':
      return one.cost === (other as PeekOp).cost
    case 'extend':
    case 'release':
      return one.units === (other as HoldOp).units
    default:
      return false
  }
}

/** Writes all that follow against the same limits, in groups of the same cost and count. Answers where they end. */
function encodeGroups(requests: readonly Request[], first: number, words: string[]): number {
  const place = words.push('') - 1
  let groups = 0
  let next = first
  while (next < requests.length && isLike(requests[next]!, requests[first]!)) {
    const start = next
    const { op, count } = requests[start]!
    do next++
    while (next < requests.length && areAlike(requests[next]!, requests[start]!))
    words.push(`${next - start}`, `${(op as ConsumeOp).cost}`, `${count}`)
    groups++
  }
  words[place] = `${groups}`
  // What most calls are says itself.
  const isAll = place === words.length - 4 && first === 0 && next === requests.length
  if (isAll && words[place + 2] === '1' && words[place + 3] === '1') words.length = place
  return next
}

/** Whether two usual requests are held to the same limits at the same time. */
function isLike(a: Request, b: Request): boolean {
  const [ours, theirs] = [a.op.parts, b.op.parts]
  if (a.nowMs !== b.nowMs || ours.length !== theirs.length || !isUsual(a)) return false
  for (let i = 0; i < ours.length; i++) if (ours[i]!.set !== theirs[i]!.set) return false
  return true
}

/** Whether two usual requests differ in nothing but their keys. */
function areAlike(a: Request, b: Request): boolean {
  return a.count === b.count && isLike(a, b) && (a.op as ConsumeOp).cost === (b.op as ConsumeOp).cost
}

/** Whether an op may be decided together with a request of the same key that waits, as one with a count. */
export function canJoin(
  { op: waiting, nowMs: waitingMs }: Request,
  op: Op,
  nowMs: number | undefined,
): boolean {
  return (
    waiting.type === 'consume' &&
    op.type === 'consume' &&
    waiting.cost === op.cost &&
    waitingMs === nowMs &&
    waiting.parts[0]!.key === op.parts[0]!.key &&
    waiting.parts[0]!.set === op.parts[0]!.set &&
    isSingle(waiting) &&
    isSingle(op) &&
    !waiting.parts[0]!.set.logs.some(isOneByOne)
  )
}

function isOneByOne({ kind }: Log): boolean {
  return kind.isOneByOne === true
}

function isSingle(op: ConsumeOp): boolean {
  const isNamed = op.requestId !== undefined
  return op.count === 1 && op.leaseMs === 0 && op.parts.length === 1 && !isNamed && !isPersonal(op)
}

/** Whether it brings what no other does. */
function isPersonal({ isWaiting, reservation }: ConsumeOp): boolean {
  return isWaiting === true || reservation !== undefined
}

/**
 * Units that a usual op may charge. A log holds up to 2^46 before it, and a total has room for less than 2^48.
 * The general driver caps any larger charge.
 */
const MAX_USUAL_UNITS: number = 2 ** 46

/** The kinds of usual ops in order of their numbers. Each gives two numbers, and one before each limit. */
const USUAL_KINDS: Readonly<Record<string, (params: UsualParams) => readonly [number, number, number?]>> = {
  w: ({ precision, records }) => [precision, records],
  t: ({ refill, parts, mostDebt }) => [refill, parts, mostDebt],
  f: ({ precision, fromFirstHit }) => [precision, fromFirstHit ? 1 : 0],
  c: ({ window, precision, mostUnits }) => [window, precision, mostUnits],
}
const KIND_NUMBERS: readonly string[] = Object.keys(USUAL_KINDS)

interface UsualParams extends LogParams {
  readonly refill: number
  readonly parts: number
  readonly mostDebt: number
  readonly fromFirstHit?: boolean
  readonly window: number
  readonly mostUnits: number
}

/** The code of a log is the sum of its kind's number and these: see prelude.lua. */
const SHADOW = 8
const MORE = 16
const OVERRIDABLE = 32
const PER_LIMIT = 64
const PER_PART = 65_536

/** The numbers of a set's logs, by its place among the parts and whether it is the last. `undefined` for unusual sets. */
const wordsOfSets = new WeakMap<LimitSet, (readonly number[] | undefined)[]>()

/** @param isLast whether no other part follows */
function wordsOf(set: LimitSet, part: number, isLast: boolean): readonly number[] | undefined {
  let known = wordsOfSets.get(set)
  if (known === undefined) {
    known = []
    wordsOfSets.set(set, known)
  }
  const place = 2 * part + (isLast ? 1 : 0)
  if (!(place in known)) known[place] = usualLogs(set, part, isLast)
  return known[place]
}

function usualLogs(
  { logs, isOverridable }: LimitSet,
  part: number,
  isLast: boolean,
): readonly number[] | undefined {
  const numbers: number[] = []
  for (const [i, { kind, params, role, shadow }] of logs.entries()) {
    const own = USUAL_KINDS[kind.tag]
    // The windows of a calendar differ in length.
    if (own === undefined || role !== 'count' || kind.paramsAt !== undefined) return undefined
    const [first, second, each] = own(params as UsualParams)
    const code =
      KIND_NUMBERS.indexOf(kind.tag) +
      1 +
      (shadow ? SHADOW : 0) +
      (isLast && i === logs.length - 1 ? 0 : MORE) +
      (isOverridable ? OVERRIDABLE : 0) +
      (params.limits.length - 1) * PER_LIMIT +
      part * PER_PART
    numbers.push(code, first, second)
    params.limits.forEach((limit, i) => {
      numbers.push(each ?? params.windows[i]!, limit)
    })
  }
  return numbers
}

/** Usual ops travel as numbers: requests against limits of usual kinds. */
function isUsual({ op, count }: Request): boolean {
  if (op.type !== 'consume' || op.leaseMs > 0 || isPersonal(op) || op.cost * count > MAX_USUAL_UNITS)
    return false
  const { parts } = op
  for (let i = 0; i < parts.length; i++) {
    const { set } = parts[i]!
    if (wordsOf(set, i, i === parts.length - 1) === undefined || (set.isOverridable && parts.length > 1))
      return false
  }
  return true
}

function usualWords({ op }: Request): readonly string[] {
  const { set } = op.parts[0]!
  const words = op.parts.flatMap(({ set }, i) => wordsOf(set, i, i === op.parts.length - 1)!.map(String))
  if (!set.isOverridable) return words
  return [...words, JSON.stringify(set.logs.map(({ serves }) => namesIn(set, serves)))]
}

/** The names of limits, and the most that an override may make of each. */
function namesIn({ limits }: LimitSet, serves: readonly number[]): object {
  return {
    names: namesOf(serves.map((i) => limits[i]!)),
    most: serves.map((i) => mostOf(limits[i]!)),
  }
}

/** Ops that write nothing. */
const LOOKS: readonly Op['type'][] = ['peek', 'list', 'explain', 'overrides']

function jsonOf({ op, count, nowMs }: Request): string {
  const sets = op.parts.map((part) => wordsOfPart(part, nowMs ?? Date.now()))
  const { requestId } = op as Named
  const { parts, ...words } = op
  const names = { requestId: undefined, hasId: requestId !== undefined }
  const isDenialKept = parts.some(({ set }) => hasBan(set))
  const overridable = parts.map(({ set }) => set.isOverridable)
  return JSON.stringify({
    ...{ ...words, ...names, count, sets, isLook: LOOKS.includes(op.type), isDenialKept },
    ...(overridable.includes(true) && { overridable }),
  })
}

function hasBan({ logs }: LimitSet): boolean {
  return logs.some(({ role }) => role === 'ban')
}

function wordsOfPart({ set }: Part, nowMs: number): object[] {
  return set.logs.map(({ kind, role, shadow, params, serves }) => ({
    kind: kind.tag,
    shadow,
    entries: kind.entries?.are,
    ...(role !== 'count' && { role }),
    ...(set.isOverridable && namesIn(set, serves)),
    ...(kind.paramsAt?.(params, nowMs) ?? params),
  }))
}

/** Reads the outcomes off the reply, one per request and in their order. An error stands for the op that it befell. */
export function decode(
  requests: readonly Request[],
  reply: unknown,
  buckets = 1,
): (Outcome | StoreUnavailableError)[] {
  const numbers: readonly unknown[] = Array.isArray(reply) ? reply : []
  let place = 0
  const next = () => {
    // Some clients are set to hand out integers as text.
    const number = Number(numbers[place++])
    if (!Number.isSafeInteger(number))
      throw new StoreUnavailableError('error', `Redis answered ${show(reply)}`)
    return number
  }
  const serverMs = next()
  if (serverMs === STALE)
    throw new StoreUnavailableError('timeout', 'a call has reached Redis when nobody waited for it any more')
  return requests.map(({ op, nowMs = serverMs }) => {
    if (op.type === 'reset') return undefined
    let first = next()
    if (first === UNREADABLE) {
      const reason = numbers[place++]
      return new StoreUnavailableError(
        'state',
        `what is stored of ${show(op.parts[0]!.key)} cannot be used: ${reason}`,
      )
    }
    let atMs = nowMs
    if (first === AHEAD) {
      atMs += next()
      first = next()
    }
    let overrides: (InForce | undefined)[] | undefined
    if (first === OVERRIDDEN) {
      overrides = op.parts.map(({ set }) => {
        if (!set.isOverridable) return undefined
        const [rule, ruleMs, blockedMs] = [String(numbers[place++]), next(), next()]
        if (!isReadable(rule)) throw new StoreUnavailableError('error', `Redis answered ${show(reply)}`)
        return ruleMs > 0 || blockedMs > 0 ? { rule, ruleMs, blockedMs } : undefined
      })
      first = next()
    }
    let ban: Ban | undefined
    if (first === BLOCKED) {
      ban = { ms: next(), parts: [] }
      first = next()
    }
    if (first === BANNED) {
      ban = banOf(
        op.parts.map(({ set }) => (hasBan(set) ? next() : 0)),
        overrides,
      )
      first = next()
    }
    let repeats: number | undefined
    if (first === AGAIN) {
      atMs = nowMs + next()
      repeats = next()
      first = 1
    }
    switch (op.type) {
      case 'consume':
      case 'peek':
        return {
          ...consumeOutcome(inForce(op, overrides), atMs, first, repeats, next),
          ...(ban && { ban }),
          ...(overrides && { overrides }),
        }
      case 'explain': {
        const asked = inForce(op, overrides)
        const outcome = consumeOutcome(asked, atMs, first, repeats, next)
        const more = explanation(asked, atMs, next)
        const ban = banOf(
          more.bans.map((ban) => ban?.blockedMs ?? 0),
          overrides,
        )
        return { ...outcome, ...more, ...(ban && { ban }), ...(overrides && { overrides }) }
      }
      case 'refund':
        place--
        return { returned: op.parts.flatMap(({ set }) => set.logs.map(next)) }
      case 'settle': {
        const settled = first === 1
        return { settled, returned: settled ? op.parts.flatMap(({ set }) => set.logs.map(next)) : [] }
      }
      case 'extend':
      case 'release':
        return { held: first === 1 }
      case 'list':
        return { lists: op.parts.flatMap(({ set }) => set.logs.map(() => entriesOf(numbers[place++]))) }
      case 'override':
        return { existed: first === 1 }
      case 'overrides':
        return overridesOf(numbers[place++], buckets)
      default:
        return undefined
    }
  })
}

function inForce<Asked extends RequestOp>(op: Asked, overrides: ConsumeOutcome['overrides']): Asked {
  return overrides === undefined ? op : { ...op, parts: partsInForce(op.parts, overrides) }
}

function consumeOutcome(
  op: RequestOp,
  atMs: number,
  admitted: number,
  repeats: number | undefined,
  next: () => number,
): ConsumeOutcome {
  const { parts, cost } = op
  const total = parts.reduce((sum, { set }) => sum + set.limits.length, 0)
  const limits = new Array<number>(3 * total)
  let costs: number[] | undefined
  let first = 0
  for (const { set } of parts) {
    for (const log of set.logs) {
      const { serves, role } = log
      if (role !== 'count') continue
      if (takesOnce(log, op)) {
        costs ??= new Array<number>(total).fill(cost)
        const taken = next()
        for (const limit of serves) costs[first + limit] = taken
      }
      for (const limit of serves) {
        const place = 3 * (first + limit)
        limits[place] = next()
        const retryAfterMs = next()
        limits[place + 1] = retryAfterMs === NEVER ? Number.POSITIVE_INFINITY : retryAfterMs
        limits[place + 2] = next()
      }
    }
    first += set.limits.length
  }
  const outcome: ConsumeOutcome = { source: 'store', atMs, admitted, limits, waitMs: 0 }
  // Nearly all have nothing more to say.
  if (costs === undefined && repeats === undefined) return outcome
  const debits = costs && debitsOf(parts, outcome, costs)
  return { ...outcome, ...(repeats !== undefined && { repeats }), ...(debits && { debits }) }
}

function explanation(
  { parts, charges: most }: ExplainOp,
  atMs: number,
  next: () => number,
): Pick<ExplainOutcome, 'frees' | 'bans' | 'charges'> {
  const frees: number[][] = []
  const charges: (Charged[] | undefined)[] = []
  let first = 0
  for (const { set } of parts) {
    for (const { kind, serves, role } of set.logs) {
      if (role !== 'count') continue
      for (const limit of serves) {
        const times: number[] = []
        // As many as there are: room is not made for as many as are said to follow.
        for (let count = next(); count > 0; count--) times.push(next())
        frees[first + limit] = times
        const told: Charged[] | undefined = kind.charges && []
        if (most !== undefined && told !== undefined) {
          for (let count = next(); count > 0; count--) told.push({ atMs: atMs - next(), units: next() })
        }
        charges[first + limit] = told
      }
    }
    first += set.limits.length
  }
  const bans = parts.map(({ set }): BanState | undefined => {
    if (!hasBan(set)) return undefined
    const [level, denials, blockedMs] = [next(), next(), next()]
    return { blockedMs, level, denials }
  })
  return { frees, bans, ...(most !== undefined && { charges }) }
}

/** The JSON of a page: where the next begins, then of each override its key, as it was given, rule and times. */
function overridesOf(json: unknown, buckets: number): OverridesOutcome {
  const [next = '', ...words] = (JSON.parse(String(json)) as unknown[]).map(String)
  const overrides: ListedOverride[] = []
  for (let i = 0; i < words.length; i += 5) {
    const [key, given, rule, ...times] = words.slice(i, i + 5)
    const [ruleMs, blockedMs] = times.map(Number)
    const areTimes = Number.isSafeInteger(ruleMs) && Number.isSafeInteger(blockedMs)
    if (!areTimes || !isReadable(rule!))
      throw new StoreUnavailableError('error', `Redis answered ${show(json)}`)
    const named = { key: key!, ...(given !== '' && { given: given! }) }
    overrides.push({ ...named, rule: rule!, ruleMs: ruleMs!, blockedMs: blockedMs! })
  }
  return { overrides, ...(next !== '' && { next }), buckets }
}

/** What a log keeps one by one: name, units, time. Where each unit stands alone, all but the first have a number behind a space. */
function entriesOf(json: unknown): Entry[] {
  const words: unknown = JSON.parse(String(json))
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
