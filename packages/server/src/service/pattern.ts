// Matches names against patterns with *.

/** Whether text matches a pattern where `*` matches any characters, or none. Takes linear time. */
export function fits(pattern: string, text: string): boolean {
  const [first, ...others] = pattern.split('*') as [string, ...string[]]
  const last = others.pop()
  if (last === undefined) return text === pattern
  if (!text.startsWith(first)) return false
  let from = first.length
  for (const part of others) {
    const at = text.indexOf(part, from)
    if (at < 0) return false
    from = at + part.length
  }
  return text.length - last.length >= from && text.endsWith(last)
}
