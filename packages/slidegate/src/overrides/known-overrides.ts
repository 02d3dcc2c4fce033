import type { Limit, Note, Notes } from '../limits/limit.ts'
import { MAX_NOTES } from '../limits/notes.ts'
import { type LimitsText, limitsOf, noteOf, type OverrideNote } from './override-note.ts'
import type { Override } from './overrides.ts'

/** What is known of a key. */
export interface Known {
  readonly note: OverrideNote
  readonly limits: readonly Limit[]
  /** By the clock of this process, or later; `Infinity` for never. */
  readonly endsAtMs: number
}

/** So many are remembered at most: more than there can be at any time. */
const MAX_REMEMBERED: number = 2 * MAX_NOTES

/** The overrides of a limiter, as this process has read them, by their names. Times pass by its own clock. */
export class KnownOverrides {
  #known = new Map<string, Known>()
  readonly #lists = new Map<LimitsText, readonly Limit[]>()
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

  of(name: string): readonly Limit[] | undefined {
    const known = this.#known.get(name)
    if (known === undefined) return undefined
    if (known.endsAtMs === Number.POSITIVE_INFINITY || this.#now() < known.endsAtMs) return known.limits
    this.#known.delete(name)
    return undefined
  }

  overrideOf(name: string): Override | undefined {
    const limits = this.of(name)
    if (limits === undefined) return undefined
    const { note, endsAtMs } = this.#known.get(name)!
    return {
      key: note.key,
      ...(note.dimension !== undefined && { dimension: note.dimension }),
      limits,
      expiresInMs: note.ttlMs === 0 ? 0 : Math.max(1, Math.ceil(endsAtMs - this.#now())),
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
    const limits = this.#limitsOf(note.limits)
    if (limits === undefined) return false
    const endsAtMs = note.ttlMs === 0 ? Number.POSITIVE_INFINITY : this.#now() - ageMs + note.ttlMs
    into.set(name, { note, limits, endsAtMs })
    return true
  }

  /** The same text is the same array: sets of limits are remembered by it. */
  #limitsOf(text: LimitsText): readonly Limit[] | undefined {
    const known = this.#lists.get(text)
    if (known !== undefined) return known
    try {
      const limits = limitsOf(text)
      if (this.#lists.size >= MAX_REMEMBERED) this.#lists.clear()
      this.#lists.set(text, limits)
      return limits
    } catch {
      // Of a later version, perhaps.
      return undefined
    }
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
