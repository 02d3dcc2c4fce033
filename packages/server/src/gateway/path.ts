// Finds the ways in which servers behind a gateway may interpret a request path.

/** Control characters and backslashes: servers interpret them differently, and legitimate clients don't send them. */
const UNREADABLE = /[\0-\x20#\\\x7f]|%(?:[01][0-9a-f]|7f|(?:25)?5c)/i

/** Parameters of a path segment. Servers treat them as parameters, as part of the name, or as the query. */
const PARAMETERS = /;[^/]*/g
/** Trailing dots and spaces, which Windows drops from file names. The lookbehind keeps the scan linear. */
const TAIL = /(?<![. ])[. ]+$/
const ESCAPE = /%([0-9a-f]{2})/gi
/** An escaped slash. Some servers treat it as a slash, others as part of the name. */
const ENCODED_SLASH = /%2f/i
/** Characters in a decoded path that servers interpret differently. */
const AMBIGUOUS = /[;?#]|%[0-9a-f]{2}|\/\/|\/\.{1,2}(?:\/|$)|[. ]$/i
/** The part from an escaped `?`, `#` or control character on. Servers that decode before they parse drop it. */
const END = /(?:[?#]|%(?:3f|23|[01][0-9a-f]|7f)).*$/is

/**
 * Returns the readings of a path: the ways in which servers may interpret it.
 *
 * Readings are decoded, in lowercase and without the query. Each byte is one character, as in Node's headers. Most paths
 * have only one reading. If there are several, the most normalized one comes first: more spellings of the path share it
 * than any other.
 *
 * Servers decode once or twice, before or after they split off the query. They disagree on whether `%2F` is a slash, `;`
 * starts parameters or the query, `//` is one slash, `..` goes up, and trailing dots and spaces count.
 *
 * @returns undefined for an unreadable path
 */
export function readingsOf(uri: string): readonly string[] | undefined {
  if (uri === '*') return [uri]
  const query = uri.indexOf('?')
  const path = query < 0 ? uri : uri.slice(0, query)
  if (!path.startsWith('/') || UNREADABLE.test(path)) return undefined
  const decoded = decode(path, true)
  if (!ENCODED_SLASH.test(path) && !AMBIGUOUS.test(decoded)) return [lowerCase(decoded)]
  const readings = new Set<string>()
  for (const sent of decoded.search(ESCAPE) < 0 ? [path] : [decoded, path]) {
    for (const whole of new Set([sent.replace(END, ''), sent])) addReadings(whole, readings)
  }
  return Array.from(readings)
}

/** @param path the path as sent, or decoded once */
function addReadings(path: string, readings: Set<string>): void {
  for (const slashesToo of [true, false]) {
    const text = decode(path, slashesToo)
    const bare = decode(path.replaceAll(PARAMETERS, ''), slashesToo)
    const cut = decode(path.replace(/;.*$/s, ''), slashesToo)
    for (const each of [text.replaceAll(PARAMETERS, ''), bare, cut, text]) {
      for (const merged of [each.replaceAll(/\/{2,}/g, '/'), each]) {
        const resolved = withoutDots(merged)
        readings.add(lowerCase(resolved.replace(TAIL, '')))
        readings.add(lowerCase(resolved))
        readings.add(lowerCase(merged))
      }
    }
  }
}

/** Lowercases only ASCII letters, because other bytes are parts of characters. */
export function lowerCase(text: string): string {
  return text.replaceAll(/[A-Z]+/g, (letters) => letters.toLowerCase())
}

function decode(path: string, slashesToo: boolean): string {
  return path.replaceAll(ESCAPE, (all, hex: string) => {
    const character = String.fromCharCode(Number.parseInt(hex, 16))
    return character === '/' && !slashesToo ? all : character
  })
}

function withoutDots(path: string): string {
  const segments = path.split('/').slice(1)
  const kept: string[] = []
  for (const segment of segments) {
    if (segment === '..') kept.pop()
    else if (segment !== '.') kept.push(segment)
  }
  const endsInDots = ['.', '..'].includes(segments.at(-1)!)
  return `/${kept.join('/')}${endsInDots && kept.length > 0 ? '/' : ''}`
}
