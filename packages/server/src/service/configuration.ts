// The configuration in force, compared with its file.

import { basename } from 'node:path'
import { diffLines } from 'diff'
import type { ConfigurationProblem, ConfigurationState, DiffLine } from '../admin/api-types.ts'
import { type LoadedConfig, loadConfig, loadText } from '../config/load.ts'
import { ConfigError } from '../config/problem.ts'

/** What is found out about another configuration. */
interface Compared {
  readonly problems: readonly ConfigurationProblem[]
  readonly diff: readonly DiffLine[]
}

/** How the configuration stands: in force, and in its file. */
export class Configuration {
  readonly #environment: NodeJS.ProcessEnv
  #loaded: LoadedConfig

  constructor(loaded: LoadedConfig, environment: NodeJS.ProcessEnv) {
    this.#loaded = loaded
    this.#environment = environment
  }

  /** What is in force from now on. */
  reload(loaded: LoadedConfig): void {
    this.#loaded = loaded
  }

  status(): Omit<ConfigurationState, 'shadowSettings'> {
    const file = this.#file
    const inForce = this.#loaded.shown ?? ''
    if (file === undefined) return { file: '', inForce, problems: [], diff: [] }
    return { file: basename(file), inForce, ...this.#compare(() => loadConfig(file, this.#options)) }
  }

  /** What a text would be as the configuration. Nothing is put in force, and files that it names are not looked at. */
  check(text: string): Compared {
    const options = { ...this.#options, looksAtFiles: false }
    return this.#compare(() => loadText(this.#file ?? 'configuration', text, options))
  }

  get #file(): string | undefined {
    return this.#loaded.files[0]
  }

  get #options(): { readonly environment: NodeJS.ProcessEnv } {
    return { environment: this.#environment }
  }

  #compare(load: () => LoadedConfig): Compared {
    try {
      return { problems: [], diff: difference(this.#loaded.shown ?? '', load().shown ?? '') }
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error
      const problems = error.problems.map(({ message, line, column }) => ({ message, line, column }))
      return { problems, diff: [] }
    }
  }
}

/** What has more lines removed and added is told as another one: time grows with their square, and nobody is answered meanwhile. */
const MAX_EDITS = 1000

function difference(before: string, after: string): DiffLine[] {
  if (before === after) return []
  const parts = diffLines(before, after, { maxEditLength: MAX_EDITS }) ?? [
    { value: before, added: false, removed: true },
    { value: after, added: true, removed: false },
  ]
  return parts.flatMap(({ value, added, removed }) => {
    const kind = added ? 'added' : removed ? 'removed' : 'same'
    return value
      .replace(/\n$/, '')
      .split('\n')
      .map((text) => ({ kind, text }) as const)
  })
}
