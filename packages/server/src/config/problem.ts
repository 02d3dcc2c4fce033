// A problem in a file, and an error that lists such problems.

/** A problem in a file, with its position. */
export interface ConfigProblem {
  readonly file: string
  /** Counted from 1. */
  readonly line: number
  /** Counted from 1. */
  readonly column: number
  /** The problem and the allowed values. */
  readonly message: string
}

/** Maximum number of problems to list, because one mistake can cause many. */
const MOST = 100

/** An invalid configuration, with up to a hundred of its problems. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError'
  readonly problems: readonly ConfigProblem[]

  constructor(problems: readonly ConfigProblem[]) {
    const listed = problems.slice(0, MOST)
    const more = problems.length - listed.length
    if (more > 0) listed.push({ ...listed.at(-1)!, message: `and ${more} more, which are not shown` })
    super(listed.map(({ file, line, column, message }) => `${file}:${line}:${column}: ${message}`).join('\n'))
    this.problems = listed
  }
}
