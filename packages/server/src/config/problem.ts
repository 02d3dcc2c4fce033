// A problem in a file, and the error that lists them.

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

/** One mistake may be everywhere. */
const MOST = 100

/** A configuration that cannot be put in force: what is wrong with it, all of it up to a hundred problems. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError'
  readonly problems: readonly ConfigProblem[]

  constructor(problems: readonly ConfigProblem[]) {
    const told = problems.slice(0, MOST)
    const more = problems.length - told.length
    if (more > 0) told.push({ ...told.at(-1)!, message: `and ${more} more, which are not shown` })
    super(told.map(({ file, line, column, message }) => `${file}:${line}:${column}: ${message}`).join('\n'))
    this.problems = told
  }
}
