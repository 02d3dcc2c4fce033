const TOKEN = "[!#$%&'*+.^_`|~0-9A-Za-z-]+"
const QUOTED = '"(?:[\\t !#-[\\]-~\\x80-\\xff]|\\\\[\\t -~\\x80-\\xff])*"'

/** A parameter, and what comes after it: `;` one more of the same element, `,` one of the next, or the end. */
const PARAMETER = new RegExp(`(${TOKEN})=(?:(${TOKEN})|(${QUOTED}))(?:[\\t ]*([;,])[\\t ]*|$)`, 'y')

/**
 * What the elements of a `Forwarded` header have for `for`, in their order, '' where one has none; undefined for a header that
 * breaks the grammar of RFC 7239. Of a parameter that comes twice in an element the last counts.
 */
export function forwardedFor(header: string): string[] | undefined {
  const elements: string[] = ['']
  PARAMETER.lastIndex = 0
  for (let separator: string | undefined = ';'; separator !== undefined; ) {
    const match = PARAMETER.exec(header)
    if (match === null) return undefined
    const [, name, token, quoted] = match
    if (name!.toLowerCase() === 'for') {
      elements[elements.length - 1] = token ?? quoted!.slice(1, -1).replace(/\\(.)/g, '$1')
    }
    separator = match[4]
    if (separator === ',') elements.push('')
  }
  return elements
}
