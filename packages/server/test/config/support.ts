import { type LoadedConfig, type LoadOptions, loadConfig } from '../../src/config/load.ts'
import { ConfigError, type ConfigProblem } from '../../src/config/problem.ts'

/** What is wrong with a file, as `line:column message`. */
export function problemsOf(file: string, options: LoadOptions = {}): string[] {
  return problemsIn(() => loadConfig(file, { environment: {}, ...options })).map(
    ({ line, column, message }) => `${line}:${column} ${message}`,
  )
}

/** What is wrong with what is done; nothing where it is done. Any other error is thrown. */
export function problemsIn(run: () => unknown): readonly ConfigProblem[] {
  try {
    run()
    return []
  } catch (error) {
    if (error instanceof ConfigError) return error.problems
    throw error
  }
}

/** A limiter that is as it should be, in YAML. */
export const API = 'api: { limits: [{ kind: slidingWindow, limit: 10, window: 1s }] }'

export type { LoadedConfig }
