// Groups keys by the network of the address they contain.

/** Keys in one network. */
export interface Network<Of> {
  /** Such as `192.0.2.0/24` or `2001:db8:1::/48`. */
  readonly prefix: string
  readonly keys: readonly Of[]
}

/** Groups the keys that contain an address, the largest network first. */
export function networksOf<Of extends { readonly key: string }>(keys: readonly Of[]): Network<Of>[] {
  const byPrefix = new Map<string, Of[]>()
  for (const each of keys) {
    const prefix = prefixOf(each.key)
    if (prefix === undefined) continue
    const known = byPrefix.get(prefix)
    if (known === undefined) byPrefix.set(prefix, [each])
    else known.push(each)
  }
  return Array.from(byPrefix, ([prefix, keys]) => ({ prefix, keys })).toSorted(
    (a, b) => b.keys.length - a.keys.length,
  )
}

/** The network of the address in a key. Undefined if the key contains no address. */
export function prefixOf(key: string): string | undefined {
  const octets = /(?<![\d.])(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.\d{1,3}(?![\d.])/.exec(key)?.slice(1)
  if (octets?.every((octet) => Number(octet) < 256)) return `${octets.join('.')}.0/24`
  const words = key.match(/(?<!\w)[\da-f:]*:[\da-f:]+/gi) ?? []
  return words.map((word) => prefixOfV6(word.replace(/(?<!:):$/, ''))).find((prefix) => prefix !== undefined)
}

function prefixOfV6(text: string): string | undefined {
  const [head = '', tail, more] = text.split('::')
  const groups = (part: string | undefined) => (part ? part.split(':') : [])
  const given = [...groups(head), ...groups(tail)]
  const isWhole = tail === undefined ? given.length === 8 : given.length > 0 && given.length < 8
  if (!isWhole || more !== undefined || given.some((group) => !/^[\da-f]{1,4}$/i.test(group)))
    return undefined
  const whole = [...groups(head), ...new Array<string>(8 - given.length).fill('0'), ...groups(tail)]
  return `${whole
    .slice(0, 3)
    .map((group) => Number.parseInt(group, 16).toString(16))
    .join(':')}::/48`
}
