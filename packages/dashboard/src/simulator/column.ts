type Numbers = Float64Array | Uint32Array

/** Numbers of which it is not known how many will come. */
export class Column<Kind extends Numbers> {
  #numbers: Kind
  #length = 0

  /** @param numbers what it begins with room for */
  constructor(numbers: Kind) {
    this.#numbers = numbers
  }

  push(number: number): void {
    if (this.#length === this.#numbers.length) this.#grow()
    this.#numbers[this.#length++] = number
  }

  take(): Kind {
    return this.#numbers.subarray(0, this.#length) as Kind
  }

  #grow(): void {
    const grown = new (this.#numbers.constructor as new (length: number) => Kind)(2 * this.#numbers.length)
    grown.set(this.#numbers)
    this.#numbers = grown
  }
}
