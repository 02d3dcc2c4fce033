import { isIPv4, isIPv6 } from 'node:net'
import fc from 'fast-check'
import { UNKNOWN_ADDRESS } from '../../src/http/index.ts'

// Parses addresses without the library: Node validates them, and the platform's URL parser splits them.

/** The 16 bytes of an IPv6 address, as eight groups. */
type Groups = readonly number[]

const group = fc.oneof(fc.constantFrom(0, 0, 0, 1, 0xffff, 0xa00), fc.nat(0xffff))

/** Addresses, many of which have special forms. */
export const groups: fc.Arbitrary<Groups> = fc.oneof(
  { weight: 4, arbitrary: fc.tuple(group, group, group, group, group, group, group, group) },
  // Mapped, translated and compatible IPv4 addresses.
  {
    weight: 3,
    arbitrary: fc
      .tuple(
        fc.constantFrom([0, 0, 0, 0, 0, 0xffff], [0x64, 0xff9b, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0]),
        group,
        group,
      )
      .map(([head, high, low]) => [...head, high, low]),
  },
  {
    weight: 2,
    arbitrary: fc
      .tuple(fc.constantFrom(0x2001, 0x2002, 0xfe80, 0xfd00), group)
      .map(([a, b]) => [a, b, 0, 0, 0, 0, 0, 1]),
  },
)

type Spell = (address: Groups, random: number) => string

function hex(number: number, random: number): string {
  const text = number.toString(16).padStart((random % 4) + 1, '0')
  return random % 3 === 0 ? text.toUpperCase() : text
}

function dotted(high: number, low: number): string {
  return [high >> 8, high & 255, low >> 8, low & 255].join('.')
}

/** Replaces all or some zeros from a random position on with `::`. */
function shortened(words: readonly string[], random: number): string {
  const first = random % words.length
  let end = first
  while (end < words.length && /^0+$/.test(words[end]!) && (end - first < 2 || random % 5 > 0)) end++
  if (end === first) return words.join(':')
  return `${words.slice(0, first).join(':')}::${words.slice(end).join(':')}`
}

const SPELLINGS: readonly Spell[] = [
  (address, random) => address.map((each) => hex(each, random)).join(':'),
  (address, random) =>
    shortened(
      address.map((each) => hex(each, random)),
      random,
    ),
  (address, random) => {
    const words = address.slice(0, 6).map((each) => hex(each, random))
    return shortened([...words, dotted(address[6]!, address[7]!)], random)
  },
  (address, random) =>
    `${SPELLINGS[random % 3]!(address, random)}%${['eth0', '1', '25eth0', 'a%b', ''][random % 5]}`,
]

/** Formats an address in a random way. */
export const spelled: fc.Arbitrary<(address: Groups) => string> = fc
  .tuple(fc.constantFrom(...SPELLINGS), fc.nat())
  .map(
    ([spell, random]) =>
      (address) =>
        spell(address, random),
  )

export const ipv4s: fc.Arbitrary<string> = fc.oneof(
  fc.ipV4(),
  fc.constantFrom('203.0.113.7', '10.0.0.1', '0.0.0.0', '255.255.255.255'),
)

/** Addresses that NAT64 never embeds: RFC 6052, section 3.1. */
const NOT_TRANSLATED =
  /^(10|127|192\.168|169\.254|172\.(1[6-9]|2\d|3[01])|100\.(6[4-9]|[7-9]\d|1[01]\d|12[0-7]))\./

/** Returns the expected key of an address. */
export function expectedKey(text: string, prefix: number): string {
  if (isIPv4(text)) return text
  const [bare = ''] = text.split('%', 1)
  if (!isIPv6(bare)) return UNKNOWN_ADDRESS
  const words = groupsOf(new URL(`http://[${bare}]`).hostname)
  const ipv4 = dotted(words[6]!, words[7]!)
  const head = words.slice(0, 6).join()
  if (head === '0,0,0,0,0,65535' || (head === '100,65435,0,0,0,0' && !NOT_TRANSLATED.test(ipv4))) return ipv4
  const masked = words.map(
    (each, i) => each & (0xffff << Math.max(0, 16 - Math.max(0, prefix - 16 * i))) & 0xffff,
  )
  const network = new URL(`http://[${masked.map((each) => each.toString(16)).join(':')}]`).hostname
  return `${network.slice(1, -1)}/${prefix}`
}

/** Parses an address in the form of URLs, which is hexadecimal only. */
function groupsOf(hostname: string): Groups {
  const [head = '', tail] = hostname.slice(1, -1).split('::')
  const words = (text: string) =>
    text === '' ? [] : text.split(':').map((word) => Number.parseInt(word, 16))
  if (tail === undefined) return words(head)
  const zeros = new Array<number>(8 - words(head).length - words(tail).length).fill(0)
  return [...words(head), ...zeros, ...words(tail)]
}
