// The paths that servers behind a gateway may read a path as.

/** Control characters and backslashes: servers read them differently. No honest client sends them. */
const UNREADABLE = /[\0-\x20#\\\x7f]|%(?:[01][0-9a-f]|7f|(?:25)?5c)/i

/** Of a segment. Some servers take them for parameters, some for characters of a name, and some for the query. */
const PARAMETERS = /;[^/]*/g
/** Names of files on Windows do without; no run of them is looked at twice. */
const TAIL = /(?<![. ])[. ]+$/
const ESCAPE = /%([0-9a-f]{2})/gi
/** Some servers take it for a slash, and others for a character of a name. */
const ENCODED_SLASH = /%2f/i
/** Where servers differ in what they make of it once it is decoded. */
const AMBIGUOUS = /[;?#]|%[0-9a-f]{2}|\/\/|\/\.{1,2}(?:\/|$)|[. ]$/i
/** Where the path ends for servers that decode it before they look for its end. */
const END = /(?:[?#]|%(?:3f|23|[01][0-9a-f]|7f)).*$/is

/**
 * All that servers may take the path of a request for, decoded, in lower case, without its query: the one that makes the
 * fewest differences comes first. Servers decode it once or twice, before or after they look for its query. They differ in whether `%2F` is
 * a slash, `;` begins parameters or the query, `//` is one slash, `..` goes up, and dots and spaces at the end count. Most paths have one reading. Bytes are characters, as Node hands headers in.
 *
 * @returns undefined for a path that cannot be read
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

/** @param path as it was sent, or decoded once */
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

/** Letters of ASCII only, for other bytes are parts of letters. */
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
