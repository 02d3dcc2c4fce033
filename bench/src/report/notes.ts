/** What people have written about the figures: kept apart, so that no run of the bench overwrites it. */
interface Note {
  /** What to know of the scenario. */
  readonly text: string
  /** Figure -> why it is what it is; asked for where its target is missed. */
  readonly figures: ReadonlyMap<string, string>
}

/** By scenario. */
export type Notes = ReadonlyMap<string, Note>

/**
 * Markdown in which `## name` begins what is said of a scenario, and `### name` below it what is said of one of its
 * figures. What stands before the first scenario is for those who write there.
 */
export function parseNotes(text: string): Notes {
  const notes = new Map<string, Note>()
  for (const section of text.split(/^(?=## )/m)) {
    if (!section.startsWith('## ')) continue
    const [first, ...rest] = section.split(/^(?=### )/m).map(headed)
    if (notes.has(first!.head)) throw new Error(`two notes are about ${first!.head}`)
    const figures = new Map(rest.map(({ head, body }) => [head, body]))
    if (figures.size < rest.length) throw new Error(`two notes are about one figure of ${first!.head}`)
    notes.set(first!.head, { text: first!.body, figures })
  }
  return notes
}

function headed(section: string): { head: string; body: string } {
  const [head = '', ...body] = section.split('\n')
  return { head: head.replace(/^#+ /, '').trim(), body: body.join('\n').trim() }
}

/** Notes on what the results do not hold: their names are old. */
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
