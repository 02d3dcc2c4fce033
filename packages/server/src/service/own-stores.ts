import { type MemoryStore, type MemoryStoreOptions, memoryStore, type Store } from 'slidegate'
import { fits } from './pattern.ts'

/** Overrides of the limiters of one pattern: nothing ever pushes them out. */
const MAX_OVERRIDES = 10_000

/**
 * The stores for limiters of callers.
 *
 * In memory each pattern of `ownLimits` has a store of its own: a token that fills one takes no room from limiters of
 * other patterns. In Redis all share one.
 */
export class OwnStores {
  readonly #shared: Store | undefined
  readonly #options: MemoryStoreOptions | undefined
  readonly #stores = new Map<string, MemoryStore>()
  #patterns: readonly string[] = []
  /** Keys that stores of removed patterns have evicted. */
  #evicted = 0

  constructor(store: Store, options: MemoryStoreOptions | undefined) {
    this.#shared = store.applySync === undefined ? store : undefined
    this.#options = options
  }

  /**
   * The longest pattern for every caller, so that a limiter is in one store only.
   *
   * @param patterns the patterns of all tokens, longest first; the same array until they change
   */
  of(limiter: string, patterns: readonly string[]): Store {
    if (this.#shared !== undefined) return this.#shared
    if (patterns !== this.#patterns) this.#forgetAllBut(patterns)
    // None is left if a reload has removed it.
    const pattern = patterns.find((each) => fits(each, limiter)) ?? '*'
    let store = this.#stores.get(pattern)
    if (store === undefined) {
      store = memoryStore({ ...this.#options, maxOverrides: MAX_OVERRIDES })
      this.#stores.set(pattern, store)
    }
    return store
  }

  /** The sums of all memory stores. */
  stats(): { readonly keys: number; readonly evicted: number } {
    const all = Array.from(this.#stores.values(), (store) => store.stats())
    return {
      keys: all.reduce((sum, { keys }) => sum + keys, 0),
      evicted: all.reduce((sum, { evicted }) => sum + evicted, this.#evicted),
    }
  }

  #forgetAllBut(patterns: readonly string[]): void {
    this.#patterns = patterns
    for (const [pattern, store] of this.#stores) {
      if (patterns.includes(pattern)) continue
      this.#evicted += store.stats().evicted
      this.#stores.delete(pattern)
    }
  }
}
