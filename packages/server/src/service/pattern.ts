// Names with *.

/** Whether a text fits a pattern in which `*` stands for any characters, also none. Time grows with the lengths only. */
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
