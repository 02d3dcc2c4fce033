import { uniformFloat64 } from 'pure-rand/distribution/uniformFloat64'
import { uniformInt } from 'pure-rand/distribution/uniformInt'
import { xoroshiro128plus } from 'pure-rand/generator/xoroshiro128plus'
import type { RandomGenerator } from 'pure-rand/types/RandomGenerator'

/** The random numbers of a run. The same seed gives the same run. */
export class Random {
  readonly #generator: RandomGenerator

  constructor(seed: number) {
    // Adjacent seeds must not be correlated.
    this.#generator = xoroshiro128plus(Math.imul(seed, 0x9e3779b1))
    for (let i = 0; i < 16; i++) this.#generator.next()
  }

  /** Returns a number from 0 (inclusive) to 1 (exclusive). */
  real(): number {
    return uniformFloat64(this.#generator)
  }

  between(least: number, most: number): number {
    return least + this.real() * (most - least)
  }

  int(least: number, most: number): number {
    return uniformInt(this.#generator, least, most)
  }

  chance(share: number): boolean {
    return this.real() < share
  }

  pick<Item>(items: readonly Item[]): Item {
    return items[this.int(0, items.length - 1)]!
  }

  /** Returns a random subset, perhaps empty. */
  some<Item>(items: readonly Item[], share: number): Item[] {
    return items.filter(() => this.chance(share))
  }

  /** Returns an exponentially distributed wait: many are short and few are long. */
  exponential(mean: number): number {
    return -mean * Math.log(1 - this.real())
  }
}
