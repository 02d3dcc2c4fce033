// A binary heap.
/** A binary heap that keeps the first item on top. */
export class Heap<Item> {
  readonly #isBefore: (one: Item, other: Item) => boolean
  #items: Item[] = []

  constructor(isBefore: (one: Item, other: Item) => boolean) {
    this.#isBefore = isBefore
  }

  get size(): number {
    return this.#items.length
  }

  peek(): Item | undefined {
    return this.#items[0]
  }

  push(item: Item): void {
    const items = this.#items
    let place = items.length
    items.push(item)
    while (place > 0) {
      const above = (place - 1) >> 1
      if (!this.#isBefore(item, items[above]!)) break
      items[place] = items[above]!
      place = above
    }
    items[place] = item
  }

  pop(): Item | undefined {
    const first = this.#items[0]
    const last = this.#items.pop()
    if (this.#items.length > 0) this.#sink(last!, 0)
    return first
  }

  /** Removes all other items. */
  keep(isKept: (item: Item) => boolean): void {
    this.#items = this.#items.filter(isKept)
    for (let place = (this.#items.length >> 1) - 1; place >= 0; place--)
      this.#sink(this.#items[place]!, place)
  }

  #sink(item: Item, from: number): void {
    const items = this.#items
    let place = from
    for (let below = 2 * place + 1; below < items.length; below = 2 * place + 1) {
      if (below + 1 < items.length && this.#isBefore(items[below + 1]!, items[below]!)) below++
      if (!this.#isBefore(items[below]!, item)) break
      items[place] = items[below]!
      place = below
    }
    items[place] = item
  }
}
