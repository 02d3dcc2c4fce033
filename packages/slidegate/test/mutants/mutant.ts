import { read, scriptOf } from '../../scripts/embed-lua.js'

/** A text that stands once in a part of the script, and what takes its place. */
export type Mutant = readonly [text: string, replacement: string]

/** Mutants of a part of the script. */
export interface Mutants {
  /** Its path in `src`. */
  readonly part: string
  /** By the check that sees them. */
  readonly mutants: Readonly<Record<string, readonly Mutant[]>>
}

/** The script, with the mutant if there is one. */
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
      `this stands ${times} times in ${part}; a mutant needs a text that stands there once:\n${text}`,
    )
  }
  return lua.replace(text, () => replacement)
}
