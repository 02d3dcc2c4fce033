/** A command in the documentation, with its output. */
export interface Documented {
  /** The arguments of `slidegate`. */
  readonly words: readonly string[]
  /** Whether the exit code is printed after the output. */
  readonly withCode: boolean
  readonly output: string
}

/** Returns the commands of a page, in order. */
export function documentedIn(page: string): Documented[] {
  const blocks = Array.from(page.matchAll(/^```console\n([\s\S]*?)^```$/gm), ([, block]) => block!)
  return blocks.flatMap((block) =>
    block
      .split(/^\$ slidegate /m)
      .slice(1)
      .map((text) => {
        const [command = '', ...lines] = text.split('\n')
        const [asked = '', code] = command.split('; echo ')
        return { words: asked.split(' '), withCode: code !== undefined, output: lines.join('\n') }
      }),
  )
}

/** Replaces times, process IDs and IDs of audit entries. */
export function timeless(output: string): string {
  return output
    .replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, '<instant>')
    .replaceAll(/\([\w.-]+\/\d+(, \d+-\d+)?\)/g, '(<process>)')
    .replaceAll(/"(\w+Ms)": \d+/g, '"$1": <ms>')
    .replaceAll(
      /\b(in|for|last|within|most|%) \d+(\.\d+)?( ?(ms|[smhd])\b)?( \d+(ms|[smhd])\b)?/g,
      '$1 <time>',
    )
    .replaceAll(/ +/g, ' ')
}

/** Replaces measured numbers. */
export function figureless(output: string): string {
  return output
    .replaceAll(/\b\d+(ms|[smhd])( \d+(ms|[smhd]))?\b/g, '<time>')
    .replaceAll(/[\d.,]*\d/g, 'N')
    .replaceAll(/ +/g, ' ')
}
