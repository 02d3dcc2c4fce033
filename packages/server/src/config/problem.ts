/** Something that is wrong in a file, and where. */
export interface ConfigProblem {
  readonly file: string
  /** From 1. */
  readonly line: number
  /** From 1. */
  readonly column: number
  /** What is wrong, and what would be right. */
  readonly message: string
}

/** A configuration that cannot be put in force: all that is wrong with it. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError'
  readonly problems: readonly ConfigProblem[]

  constructor(problems: readonly ConfigProblem[]) {
    super(
      problems.map(({ file, line, column, message }) => `${file}:${line}:${column}: ${message}`).join('\n'),
    )
    this.problems = problems
  }
}
