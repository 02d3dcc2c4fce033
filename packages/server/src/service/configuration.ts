// The active configuration, compared with its file.

import { basename } from 'node:path'
import { diffLines } from 'diff'
import type { ConfigurationProblem, ConfigurationState, DiffLine } from '../admin/api-types.ts'
import { type LoadedConfig, loadConfig, loadText } from '../config/load.ts'
import { ConfigError } from '../config/problem.ts'

/** The difference between another configuration and the active one. */
interface Compared {
  readonly problems: readonly ConfigurationProblem[]
  readonly diff: readonly DiffLine[]
}

export class Configuration {
  readonly #environment: NodeJS.ProcessEnv
  #loaded: LoadedConfig

  constructor(loaded: LoadedConfig, environment: NodeJS.ProcessEnv) {
    this.#loaded = loaded
    this.#environment = environment
  }

  /** Records a configuration that took effect. */
  reload(loaded: LoadedConfig): void {
    this.#loaded = loaded
  }

  status(): Omit<ConfigurationState, 'shadowSettings'> {
    const file = this.#file
    const inForce = this.#loaded.shown ?? ''
    if (file === undefined) return { file: '', inForce, problems: [], diff: [] }
    return { file: basename(file), inForce, ...this.#compare(() => loadConfig(file, this.#options)) }
  }

  /** Checks text as a configuration, without applying it or reading files that it names. */
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

// With more edits than this, the whole text counts as changed, because a diff takes quadratic time and delays requests.
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
