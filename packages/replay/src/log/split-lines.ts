// Splits bytes into lines. Also runs in browsers.

/** Longer lines are cut to this length plus 1, which marks them as too long. */
export const MAX_LINE_CHARS: number = 1024 * 1024

/** Decodes UTF-8 and splits at line feeds. Holds at most one chunk and one line in memory. */
export async function* splitLines(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<string[]> {
  // The decoder drops a byte order mark.
  const decoder = new TextDecoder()
  let rest = ''
  for await (const chunk of chunks) {
    const lines = decoder.decode(chunk, { stream: true }).split('\n')
    lines[0] = cut(rest + lines[0])
    rest = cut(lines.pop()!)
    yield lines.map(withoutReturn)
  }
  rest += decoder.decode()
  if (rest !== '') yield [withoutReturn(rest)]
}

function cut(line: string): string {
  return line.length > MAX_LINE_CHARS ? line.slice(0, MAX_LINE_CHARS + 1) : line
}

function withoutReturn(line: string): string {
  return line.endsWith('\r') ? line.slice(0, -1) : line
}
