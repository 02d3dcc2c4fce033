import type { ProblemTold } from '../../../server/src/admin/overview.ts'

/** What is wrong with a configuration, and where. */
export function Problems({
  problems,
  onGo,
}: {
  readonly problems: readonly ProblemTold[]
  /** Shows the place. Default: there is nothing to show it in. */
  readonly onGo?: (problem: ProblemTold) => void
}) {
  return (
    <ul class="problems">
      {problems.map((problem) => {
        const { line, column, message } = problem
        const place = `line ${line}, column ${column}`
        return (
          <li key={`${place} ${message}`}>
            {onGo === undefined ? (
              place
            ) : (
              <button type="button" class="plain small" onClick={() => onGo(problem)}>
                {place}
              </button>
            )}
            : {message}
          </li>
        )
      })}
    </ul>
  )
}
