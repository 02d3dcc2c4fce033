/**
 * Returns the documented output if the printed output matches it, else the printed output.
 *
 * In documentation, `…` matches any text in a line. A line with only `…` matches any lines.
 */
export function asDocumented(printed: string, documented: string): string {
  const lines = documented.split(/(?<=\n)/).map((line) => {
    return line === '…\n' ? '(?:.*\\n)*?' : line.split('…').map(escaped).join('.*')
  })
  return new RegExp(`^${lines.join('')}$`).test(printed) ? documented : printed
}

function escaped(text: string): string {
  return text.replaceAll(/[\\^$.*+?()[\]{}|/]/g, '\\$&')
}
