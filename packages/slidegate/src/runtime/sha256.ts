// SHA-256 (FIPS 180-4) and HMAC-SHA-256 (RFC 2104), for runtimes without `node:crypto`. Web Crypto is asynchronous.

const BLOCK = 64

let constants: ReturnType<typeof makeConstants> | undefined

/** Fractional parts of the square and cube roots of primes, 32 bits each. Rounding errors don't reach these bits. */
function makeConstants() {
  const primes: number[] = []
  for (let n = 2; primes.length < 64; n++) if (primes.every((prime) => n % prime !== 0)) primes.push(n)
  const fractions = (root: (n: number) => number) =>
    Int32Array.from(primes, (prime) => (root(prime) % 1) * 2 ** 32)
  return { start: fractions(Math.sqrt).subarray(0, 8), rounds: fractions(Math.cbrt) }
}

const rotate = (word: number, by: number): number => (word >>> by) | (word << (32 - by))

export function sha256(message: ArrayLike<number>): Uint8Array {
  constants ??= makeConstants()
  const { start, rounds } = constants
  const { length } = message
  const padded = new Uint8Array(BLOCK * Math.ceil((length + 9) / BLOCK))
  padded.set(message)
  padded[length] = 0x80
  const input = new DataView(padded.buffer)
  // The length in bits. No message here has 2^32 bits.
  input.setInt32(padded.length - 4, length << 3)
  const state = start.slice()
  const w = new Int32Array(64)
  for (let block = 0; block < padded.length; block += BLOCK) {
    let [a = 0, b = 0, c = 0, d = 0, e = 0, f = 0, g = 0, h = 0] = state
    for (let i = 0; i < 64; i++) {
      if (i < 16) {
        w[i] = input.getInt32(block + 4 * i)
      } else {
        const [x, y] = [w[i - 15]!, w[i - 2]!]
        const s0 = rotate(x, 7) ^ rotate(x, 18) ^ (x >>> 3)
        const s1 = rotate(y, 17) ^ rotate(y, 19) ^ (y >>> 10)
        w[i] = w[i - 16]! + s0 + w[i - 7]! + s1
      }
      const s1 = rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)
      const t1 = h + s1 + ((e & f) ^ (~e & g)) + rounds[i]! + w[i]!
      const s0 = rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)
      const t2 = s0 + ((a & b) ^ (a & c) ^ (b & c))
      ;[h, g, f, e, d, c, b, a] = [g, f, e, (d + t1) | 0, c, b, a, (t1 + t2) | 0]
    }
    state.set([a, b, c, d, e, f, g, h].map((word, i) => word + state[i]!))
  }
  const digest = new DataView(new ArrayBuffer(32))
  for (const [i, word] of state.entries()) digest.setInt32(4 * i, word)
  return new Uint8Array(digest.buffer)
}

export function hmacSha256(key: Uint8Array): (message: Uint8Array) => Uint8Array {
  const short = key.length > BLOCK ? sha256(key) : key
  const padded = (by: number) => Array.from({ length: BLOCK }, (_, i) => (short[i] ?? 0) ^ by)
  const [inner, outer] = [padded(0x36), padded(0x5c)]
  return (message) => sha256([...outer, ...sha256([...inner, ...message])])
}
