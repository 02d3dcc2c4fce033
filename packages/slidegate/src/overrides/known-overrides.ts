import type { Limit, Notes } from '../limits/limit.ts'
import { MAX_NOTES } from '../limits/notes.ts'
import { type LimitsText, limitsOf, noteOf, type OverrideNote, stateOf } from './override-note.ts'
import type { Override } from './overrides.ts'

/** What is in force in place of the declared limits; the same object until that changes. */
export interface InForce {
  /** Nothing where it is the declared limits. */
  readonly limits: readonly Limit[] | undefined
  /** Sets of limits that were in force before, and whose logs may hold what still counts. */
  readonly formerly: readonly (readonly Limit[])[]
}

/** What is known of a key. */
interface Known {
  readonly note: OverrideNote
  /** By the clock of this process, or later. */
  readonly writtenAtMs: number
  inForce: InForce | undefined
  changesAtMs: number
}

/** The overrides of a limiter, as this process has read them, by their names. Times pass by its own clock. */
export class KnownOverrides {
  readonly #known = new Map<string, Known>()
  readonly #lists = new LimitLists()
  readonly #now: () => number
  /** That of the table when it was last read. */
  version = 0

  constructor(now: () => number) {
    this.#now = now
  }

  get isEmpty(): boolean {
    return this.#known.size === 0
  }

  of(name: string): InForce | undefined {
    const known = this.#known.get(name)
    if (known === undefined) return undefined
    if (known.changesAtMs !== Number.POSITIVE_INFINITY && this.#now() >= known.changesAtMs) {
      this.#arrange(name, known)
    }
    return known.inForce
  }

  /** What was written, and when. */
  writtenAt(name: string): Pick<Known, 'note' | 'writtenAtMs'> | undefined {
    return this.#known.get(name)
  }

  overrideOf(name: string): Override | undefined {
    const limits = this.of(name)?.limits
    if (limits === undefined) return undefined
    const { note, writtenAtMs } = this.#known.get(name)!
    return {
      key: note.key,
      ...(note.dimension !== undefined && { dimension: note.dimension }),
      limits,
      expiresInMs: note.ttlMs === 0 ? 0 : Math.max(1, Math.ceil(writtenAtMs + note.ttlMs - this.#now())),
    }
  }

  all(): Override[] {
    return Array.from(this.#known.keys(), (name) => this.overrideOf(name)).filter(
      (each) => each !== undefined,
    )
  }

  learn({ version, isAll, notes }: Notes): void {
    if (isAll) this.#known.clear()
    for (const { name, text, ageMs = 0 } of notes) this.keep(name, text, ageMs)
    this.version = version
  }

  keep(name: string, text: string | undefined, ageMs: number): void {
    this.#known.delete(name)
    const note = text === undefined ? undefined : noteOf(text)
    if (note === undefined) return
    const known = { note, writtenAtMs: this.#now() - ageMs, inForce: undefined, changesAtMs: 0 }
    this.#known.set(name, known)
    this.#arrange(name, known)
  }

  /** What is in force from now on, and until when. */
  #arrange(name: string, known: Known): void {
    const { limits, formerly, changesAtMs } = stateOf(known.note, known.writtenAtMs, this.#now())
    known.inForce = this.#lists.inForce(limits, formerly)
    known.changesAtMs = changesAtMs
    if (known.inForce === undefined) this.#known.delete(name)
  }
}

/** So many are remembered at most: more than there can be at any time. */
const MAX_REMEMBERED: number = 2 * MAX_NOTES

/** Limits, and what is in force, by what they are stored as: where it is the same, the objects are the same. */
class LimitLists {
  readonly #lists = new Map<LimitsText, readonly Limit[]>()
  readonly #inForce = new Map<string, InForce>()

  /** Nothing where there is nothing to say, or a limit is none that is known here. */
  inForce(limits: LimitsText | undefined, formerly: readonly LimitsText[]): InForce | undefined {
    if (limits === undefined && formerly.length === 0) return undefined
    try {
      return found(this.#inForce, [limits, ...formerly].join('\n'), () =>
        Object.freeze({
          limits: limits === undefined ? undefined : this.#of(limits),
          formerly: Object.freeze(formerly.map((text) => this.#of(text))),
        }),
      )
    } catch {
      return undefined
    }
  }

  #of(text: LimitsText): readonly Limit[] {
    return found(this.#lists, text, () => limitsOf(text))
  }
}

function found<Value>(known: Map<string, Value>, text: string, make: () => Value): Value {
  let value = known.get(text)
  if (value === undefined) {
    value = make()
    if (known.size >= MAX_REMEMBERED) known.clear()
    known.set(text, value)
  }
  return value
}
