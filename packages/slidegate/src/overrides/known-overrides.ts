import type { Limit, Note, Notes } from '../limits/limit.ts'
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
export interface Known {
  readonly note: OverrideNote
  /** By the clock of this process, or later. */
  readonly writtenAtMs: number
  inForce: InForce | undefined
  changesAtMs: number
}

/** The overrides of a limiter, as this process has read them, by their names. Times pass by its own clock. */
export class KnownOverrides {
  #known = new Map<string, Known>()
  readonly #lists = new LimitLists()
  readonly #now: () => number
  /** That of the table when it was last read. */
  version = 0
  /** By how many notes what was told of all last differed from what there should be. None, unless others write to the table. */
  surplus = 0

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
      this.#arrange(known)
      if (known.inForce === undefined) this.#known.delete(name)
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

  /** Takes in what was changed; answers the names of those that cannot be read. */
  learn({ version, notes }: Notes): readonly string[] {
    this.version = version
    return notes.filter((note) => !this.#put(note, this.#known)).map(({ name }) => name)
  }

  /** Begins to take in all there is; nothing of it is in force before it {@link replace}s what is known. */
  begin(): AllOverrides {
    return new AllOverrides((note, into) => this.#put(note, into))
  }

  /** Answers the names of those that cannot be read. */
  replace({ known, damaged }: AllOverrides, version: number): readonly string[] {
    this.#known = known
    this.version = version
    return Array.from(damaged)
  }

  keep(name: string, text: string | undefined): void {
    this.#put({ name, text, ttlMs: 0 }, this.#known)
  }

  /** Answers whether it can be read. Of one that is damaged what was known stands. */
  #put({ name, text, ageMs = 0, isDamaged }: Note, into: Map<string, Known>): boolean {
    if (isDamaged) {
      const before = this.#known.get(name)
      if (before !== undefined) into.set(name, before)
      return false
    }
    into.delete(name)
    if (text === undefined) return true
    const note = noteOf(text)
    if (note === undefined) return false
    const known = { note, writtenAtMs: this.#now() - ageMs, inForce: undefined, changesAtMs: 0 }
    const isReadable = this.#arrange(known)
    if (known.inForce !== undefined) into.set(name, known)
    return isReadable
  }

  /** What is in force from now on, and until when; answers whether those limits are known here. */
  #arrange(known: Known): boolean {
    const { limits, formerly, changesAtMs } = stateOf(known.note, known.writtenAtMs, this.#now())
    known.inForce = this.#lists.inForce(limits, formerly)
    known.changesAtMs = changesAtMs
    return limits === undefined || known.inForce?.limits !== undefined
  }
}

/** All the overrides there are, as far as they have been told. */
export class AllOverrides {
  readonly known: Map<string, Known> = new Map()
  /** Of all that were told, gone ones included. */
  readonly names: Set<string> = new Set()
  readonly damaged: Set<string> = new Set()
  readonly #put: (note: Note, into: Map<string, Known>) => boolean

  constructor(put: (note: Note, into: Map<string, Known>) => boolean) {
    this.#put = put
  }

  add({ notes }: Notes): void {
    for (const note of notes) {
      this.names.add(note.name)
      if (!this.#put(note, this.known)) this.damaged.add(note.name)
    }
  }
}

/** So many are remembered at most: more than there can be at any time. */
const MAX_REMEMBERED: number = 2 * MAX_NOTES

/** Limits, and what is in force, by what they are stored as: where it is the same, the objects are the same. */
class LimitLists {
  readonly #lists = new Map<LimitsText, readonly Limit[] | undefined>()
  readonly #inForce = new Map<string, InForce | undefined>()

  /** Nothing where there is nothing to say. Limits that are not known here are left out. */
  inForce(limits: LimitsText | undefined, formerly: readonly LimitsText[]): InForce | undefined {
    return found(this.#inForce, [limits, ...formerly].join('\n'), () => {
      const now = limits === undefined ? undefined : this.#of(limits)
      const then = formerly.map((text) => this.#of(text)).filter((known) => known !== undefined)
      if (now === undefined && then.length === 0) return undefined
      return Object.freeze({ limits: now, formerly: Object.freeze(then) })
    })
  }

  #of(text: LimitsText): readonly Limit[] | undefined {
    return found(this.#lists, text, () => {
      try {
        return limitsOf(text)
      } catch {
        return undefined
      }
    })
  }
}

function found<Value>(known: Map<string, Value>, text: string, make: () => Value): Value {
  const value = known.get(text)
  if (value !== undefined || known.has(text)) return value as Value
  const made = make()
  if (known.size >= MAX_REMEMBERED) known.clear()
  known.set(text, made)
  return made
}
