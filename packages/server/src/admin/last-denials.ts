// Stores when keys were last denied, in bounded memory.

import { keyHash } from './keys.ts'

/** Maximum number of keys. The keys denied longest ago are dropped. */
const MAX_KEYS = 4096

/** The basis for a second hash, because different keys may have the same first hash. */
const OTHER_BASIS = 0x2545f491

/** The name of a key in {@link LastDenials}. The name doesn't reveal the key to other instances. */
export function denialWord(key: string): string {
  return `${keyHash(key)} ${keyHash(key, OTHER_BASIS)}`
}

/** When a key was last denied, in epoch milliseconds, by `<limiter>/<dimension>`. */
export type DenialTimes = Readonly<Record<string, number>>

export class LastDenials {
  readonly #keys = new Map<string, Map<string, number>>()

  /** @param dimension empty for a limiter without dimensions */
  add(limiter: string, dimension: string, key: string, nowMs: number): void {
    const word = denialWord(key)
    const times = this.#keys.get(word) ?? new Map<string, number>()
    this.#keys.delete(word)
    this.#keys.set(word, times.set(`${limiter}/${dimension}`, Math.round(nowMs)))
    if (this.#keys.size > MAX_KEYS) this.#keys.delete(this.#keys.keys().next().value!)
  }

  /** @param word see {@link denialWord} */
  of(word: string): DenialTimes {
    return Object.fromEntries(this.#keys.get(word) ?? [])
  }
}

/** Merges the times from several processes. The latest ones win. */
export function mergeDenials(processes: readonly DenialTimes[]): ReadonlyMap<string, number> {
  const latest = new Map<string, number>()
  for (const [place, atMs] of processes.flatMap(Object.entries<number>)) {
    latest.set(place, Math.max(atMs, latest.get(place) ?? 0))
  }
  return latest
}
