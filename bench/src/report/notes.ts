/** Hand-written notes on a scenario, in a file that the bench doesn't overwrite. */
interface Note {
  /** The note on the scenario as a whole. */
  readonly text: string
  /** Figure -> explanation. Expected for each missed target. */
  readonly figures: ReadonlyMap<string, string>
}

/** Scenario -> notes. */
export type Notes = ReadonlyMap<string, Note>

/**
 * Parses notes in Markdown. `## name` starts a scenario, and `### name` below it starts a figure.
 *
 * Text before the first scenario is ignored.
 */
export function parseNotes(text: string): Notes {
  const notes = new Map<string, Note>()
  for (const section of text.split(/^(?=## )/m)) {
    if (!section.startsWith('## ')) continue
    const [first, ...rest] = section.split(/^(?=### )/m).map(headed)
    if (notes.has(first!.head)) throw new Error(`notes.md has two notes on ${first!.head}`)
    const figures = new Map(rest.map(({ head, body }) => [head, body]))
    if (figures.size < rest.length) throw new Error(`notes.md has two notes on one figure of ${first!.head}`)
    notes.set(first!.head, { text: first!.body, figures })
  }
  return notes
}

function headed(section: string): { head: string; body: string } {
  const [head = '', ...body] = section.split('\n')
  return { head: head.replace(/^#+ /, '').trim(), body: body.join('\n').trim() }
}

/** Returns the names in the notes that aren't in the results. */
export function strayNotes(
  notes: Notes,
  results: readonly { readonly name: string; readonly figures: readonly { readonly name: string }[] }[],
): string[] {
  return [...notes].flatMap(([scenario, { figures }]) => {
    const result = results.find(({ name }) => name === scenario)
    if (result === undefined) return [scenario]
    const known = new Set(result.figures.map(({ name }) => name))
    return [...figures.keys()].filter((name) => !known.has(name)).map((name) => `${scenario}: ${name}`)
  })
}
