/**
 * What was printed, as a page says it where it says the same. There `…` stands for what differs in a line, and alone in a
 * line for any lines.
 */
export function asSaid(printed: string, said: string): string {
  const lines = said.split(/(?<=\n)/).map((line) => {
    return line === '…\n' ? '(?:.*\\n)*?' : line.split('…').map(escaped).join('.*')
  })
  return new RegExp(`^${lines.join('')}$`).test(printed) ? said : printed
}

function escaped(text: string): string {
  return text.replaceAll(/[\\^$.*+?()[\]{}|/]/g, '\\$&')
}
