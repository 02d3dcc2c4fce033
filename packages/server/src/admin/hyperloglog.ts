// HyperLogLog: estimates the number of distinct keys.

/** Number of hash bits that select one of 32,768 one-byte registers. The standard error is 0.6%. */
const PRECISION = 15

/** The precision of compact sketches: 4,096 registers, with a standard error below 2%. */
export const COARSE = 12

const HASH_BITS = 32

/**
 * Estimates the number of distinct hashes, in 32 KB of memory.
 *
 * HyperLogLog is by Flajolet, Fusy, Gandouet and Meunier (2007). The improved estimator is by Ertl, "New
 * cardinality estimation algorithms for HyperLogLog sketches" (2017): it is accurate for small and large
 * numbers, without a correction table.
 */
export class HyperLogLog {
  readonly registers: Uint8Array
  readonly #precision: number

  constructor(registers: Uint8Array = new Uint8Array(2 ** PRECISION)) {
    this.registers = registers
    this.#precision = Math.log2(registers.length)
  }

  add(hash: number): void {
    const rest = hash << PRECISION
    // The rank is the position of the first 1 after the bits that select the register.
    const rank = rest === 0 ? HASH_BITS - PRECISION + 1 : Math.clz32(rest) + 1
    const register = hash >>> (HASH_BITS - PRECISION)
    if (this.registers[register]! < rank) this.registers[register] = rank
  }

  /** Merges sketches of the same precision. */
  static union([first, ...others]: readonly HyperLogLog[]): HyperLogLog {
    const union = first!.registers.slice()
    for (const { registers } of others) {
      for (let i = 0; i < union.length; i++) if (registers[i]! > union[i]!) union[i] = registers[i]!
    }
    return new HyperLogLog(union)
  }

  /** Returns the sketch with fewer registers, as if it had been created with this precision. */
  folded(precision: number): HyperLogLog {
    const { registers } = this
    const shift = this.#precision - precision
    const folded = new Uint8Array(2 ** precision)
    const merged = 2 ** shift
    for (let register = 0; register < folded.length; register++) {
      const start = register << shift
      let chosen = 0
      while (chosen < merged && registers[start + chosen] === 0) chosen++
      if (chosen === merged) continue
      // The lowest bits of the old index now belong to the rank. The first register in use has the most leading zeros
      // in these bits, so it determines the rank.
      folded[register] = chosen === 0 ? shift + registers[start]! : Math.clz32(chosen) - (32 - shift) + 1
    }
    return new HyperLogLog(folded)
  }

  /** Returns the estimate, rounded to an integer. */
  count(): number {
    const size = this.registers.length
    const most = HASH_BITS - this.#precision
    const ranks = new Float64Array(most + 2)
    for (const rank of this.registers) ranks[rank]!++
    let z = size * tau(1 - ranks[most + 1]! / size)
    for (let rank = most; rank >= 1; rank--) z = 0.5 * (z + ranks[rank]!)
    z += size * sigma(ranks[0]! / size)
    return Math.round((size * size) / (2 * Math.LN2 * z))
  }

  /** Encodes the registers in base64, for JSON. */
  text(): string {
    return Buffer.from(this.registers).toString('base64')
  }

  /** Decodes registers. Returns undefined if the text is invalid. */
  static of(text: unknown): HyperLogLog | undefined {
    if (typeof text !== 'string') return undefined
    const registers = new Uint8Array(Buffer.from(text, 'base64'))
    const isOurs = registers.length === 2 ** PRECISION || registers.length === 2 ** COARSE
    const most = HASH_BITS - Math.log2(registers.length) + 1
    if (!isOurs) return undefined
    for (const rank of registers) if (rank > most) return undefined
    return new HyperLogLog(registers)
  }
}

function sigma(x: number): number {
  if (x === 1) return Number.POSITIVE_INFINITY
  let [power, y, z, before] = [x, 1, x, 0]
  do {
    power *= power
    before = z
    z += power * y
    y += y
  } while (z !== before)
  return z
}

function tau(x: number): number {
  if (x === 0 || x === 1) return 0
  let [root, y, z, before] = [x, 1, 1 - x, 0]
  do {
    root = Math.sqrt(root)
    before = z
    y *= 0.5
    z -= (1 - root) ** 2 * y
  } while (z !== before)
  return z / 3
}
