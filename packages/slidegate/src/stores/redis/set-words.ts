// Writes the words of an op's logs. driver.lua describes them, and the .lua file of each kind those of its log.

import type { LimitSet, Log } from '../../limits/limit-set.ts'
import { declaredName, mostOf } from '../../limits/override.ts'
import type { Part } from '../../ops/request.ts'
import { kindOf, type Op } from '../../ops/table.ts'

/** The tags of the kinds, in the order of their numbers, which start at 1. */
const KINDS = 'wtfczxeb'
/** Offset of the first limit from a log's place, by kind number minus one. */
const FIRST_LIMIT = [2, 4, 3, 4, 3, 2, 2]
/** The kind of entries that reservations are: see entry-window.lua. */
const RESERVATION = 4

/** A log's code is the sum of its kind's number and these values. */
const SHADOW = 16
const MORE = 32
const PER_WORD = 64
const PER_OVERRIDE = 65_536

/** A limit's place is the sum of its kind's number and these values. */
const PER_PLACE = 65_536
const PER_STEP = 16

const NO_LOGS: readonly string[] = ['0']

type PartSet = Pick<Part, 'set'>

interface KnownWords {
  readonly parts: readonly PartSet[]
  readonly words: readonly string[]
}

/** The words of the last used sets, by the first set of the op. */
const known = new WeakMap<LimitSet, KnownWords>()

export function setWordsOf(op: Op, nowMs: number | undefined): readonly string[] {
  if (kindOf(op).keys === 'index') return NO_LOGS
  const { parts } = op
  const first = parts[0]!.set
  const last = known.get(first)
  if (last !== undefined && haveSameSets(last.parts, parts)) return last.words
  const words = wordsOf(parts, nowMs ?? Date.now())
  const isTimed = parts.some(({ set }) => set.logs.some(({ kind }) => kind.hasTimedWords))
  if (!isTimed) known.set(first, { parts: parts.map(({ set }) => ({ set })), words })
  return words
}

export function haveSameSets(a: readonly PartSet[], b: readonly PartSet[]): boolean {
  if (a.length !== b.length) return false
  for (let i = 0; i < a.length; i++) if (a[i]!.set !== b[i]!.set) return false
  return true
}

function wordsOf(parts: readonly Part[], nowMs: number): string[] {
  const words: string[] = []
  let names = ''
  let overridable = 0
  let logs = parts.reduce((sum, { set }) => sum + set.logs.length, 0)
  for (const { set } of parts) {
    set.logs.forEach((log, i) => {
      const own = logWords(log, i, nowMs)
      const place = words.length + 1
      const code = numberOf(log) + (log.shadow ? SHADOW : 0) + (--logs > 0 ? MORE : 0) + own.length * PER_WORD
      if (set.isOverridable && log.role === 'count') names += namesIn(set, log, place)
      words.push(`${code}`, ...own.map(String))
    })
    if (set.isOverridable) {
      overridable++
      names += '|'
    }
  }
  words[0] = `${Number(words[0] ?? 0) + overridable * PER_OVERRIDE}`
  return overridable > 0 ? [...words, names] : words
}

function logWords({ kind, role, params }: Log, place: number, nowMs: number): readonly number[] {
  if (role === 'reservations') return [params.windows[0]!, RESERVATION]
  const words = kind.words(params, nowMs)
  return role === 'ban' ? [place, ...words] : words
}

function numberOf({ kind }: Log): number {
  return KINDS.indexOf(kind.tag) + 1
}

/** The names of limits, their places, and the maximum for an override: see override.lua. */
function namesIn({ limits }: LimitSet, log: Log, place: number): string {
  const width = log.kind.tag === 'w' ? 2 : 1
  const number = numberOf(log)
  const named = log.serves.map((served, i) => {
    const limit = limits[served]!
    const where = place * PER_PLACE + (FIRST_LIMIT[number - 1]! + width * i) * PER_STEP + number
    const numbers = ` ${where} ${mostOf(limit)}`
    return `/${declaredName(limit)}${numbers}${limits.length === 1 ? `/${numbers}` : ''}`
  })
  return named.join('')
}
