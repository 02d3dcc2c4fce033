import { type LoadedConfig, type LoadOptions, loadConfig } from '../../src/config/load.ts'
import { ConfigError, type ConfigProblem } from '../../src/config/problem.ts'

/** Returns the problems of a file, as `line:column message`. */
export function problemsOf(file: string, options: LoadOptions = {}): string[] {
  return problemsIn(() => loadConfig(file, { environment: {}, ...options })).map(
    ({ line, column, message }) => `${line}:${column} ${message}`,
  )
}

/** Returns the problems that a function throws, or none if it succeeds. Rethrows other errors. */
export function problemsIn(run: () => unknown): readonly ConfigProblem[] {
  try {
    run()
    return []
  } catch (error) {
    if (error instanceof ConfigError) return error.problems
    throw error
  }
}

/** A valid limiter in YAML. */
export const API = 'api: { limits: [{ kind: slidingWindow, limit: 10, window: 1s }] }'

export type { LoadedConfig }
