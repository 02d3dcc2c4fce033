import { read, scriptOf } from '../../scripts/embed-lua.js'
import { withoutShortCut } from '../history/general-driver.ts'

/** A text that stands once in a part of the script, and what takes its place. */
export type Mutant = readonly [text: string, replacement: string]

/** Mutants of a part of the script. */
export interface Mutants {
  /** Its path in `src`. */
  readonly part: string
  /** Whether the general driver decides the usual op, too: else few checks would come to this part. */
  readonly withoutShortCut?: boolean
  /** By the check that sees them. */
  readonly mutants: Readonly<Record<string, readonly Mutant[]>>
}

/** The script, with the mutant if there is one. */
export function scriptWith(
  { part, withoutShortCut: isGeneral }: Omit<Mutants, 'mutants'>,
  mutant?: Mutant,
): string {
  const script = scriptOf((path) => {
    const lua = read(path)
    return path === part && mutant ? mutated(lua, part, mutant) : lua
  })
  return isGeneral ? withoutShortCut(script) : script
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
