import { read, scriptOf } from '../../scripts/embed-lua.js'

/** A text that occurs once in a part of the script, and its replacement. */
export type Mutant = readonly [text: string, replacement: string]

/** Mutants of a part of the script. */
export interface Mutants {
  /** Path in `src`. */
  readonly part: string
  /** Name of the check that detects them -> mutants. */
  readonly mutants: Readonly<Record<string, readonly Mutant[]>>
}

/** Returns the script, with the mutant if there is one. */
export function scriptWith({ part }: Omit<Mutants, 'mutants'>, mutant?: Mutant): string {
  return scriptOf((path) => {
    const lua = read(path)
    return path === part && mutant ? mutated(lua, part, mutant) : lua
  })
}

function mutated(lua: string, part: string, [text, replacement]: Mutant): string {
  const times = lua.split(text).length - 1
  if (times !== 1) {
    throw new Error(
      `The text of a mutant must occur exactly once in ${part}, but occurs ${times} times:\n${text}`,
    )
  }
  return lua.replace(text, () => replacement)
}
