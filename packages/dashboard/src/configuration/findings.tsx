// Results of a configuration check: problems and differences.

import { Fragment } from 'preact'
import type { ConfigurationProblem, DiffLine } from '../../../server/src/admin/api-types.ts'
import { count } from '../format.ts'

const SIGNS = { same: ' ', added: '+', removed: '−' } as const

/** Shows added and removed lines. Each is marked with a sign, a word and a color. */
export function Diff({ label, lines }: { readonly label: string; readonly lines: readonly DiffLine[] }) {
  const linesThatAre = (kind: DiffLine['kind']) => lines.filter((line) => line.kind === kind).length
  return (
    <figure class="diff">
      <figcaption>
        {label}: {count(linesThatAre('added'))} added, {count(linesThatAre('removed'))} removed.
      </figcaption>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: the keyboard must reach an element that scrolls */}
      <section class="scrolled code" aria-label={label} tabIndex={0}>
        <ol>
          {hunksOf(lines).map(({ leftOut, from, lines }) => (
            <Fragment key={from}>
              {leftOut > 0 && <li class="left-out">… {count(leftOut)} unchanged lines</li>}
              {lines.map(({ kind, text }, i) => (
                <li key={from + i} class={kind}>
                  <span aria-hidden="true">{SIGNS[kind]} </span>
                  {kind !== 'same' && <span class="hidden">{kind}: </span>}
                  {text}
                </li>
              ))}
            </Fragment>
          ))}
        </ol>
      </section>
    </figure>
  )
}

/** Changed lines with their context, and the number of unchanged lines omitted before the hunk. */
interface Hunk {
  readonly leftOut: number
  /** The index of the hunk's first line. */
  readonly from: number
  readonly lines: readonly DiffLine[]
}

/** Unchanged lines shown before and after a change. */
const CONTEXT = 3

/** Splits lines into hunks. If lines are omitted at the end, the last hunk has no lines. */
function hunksOf(lines: readonly DiffLine[]): Hunk[] {
  const isNear = (_line: DiffLine, i: number) =>
    lines.slice(Math.max(0, i - CONTEXT), i + CONTEXT + 1).some(({ kind }) => kind !== 'same')
  const near = lines.map(isNear)
  const hunks: Hunk[] = []
  for (let at = 0; at < lines.length; ) {
    const from = near.indexOf(true, at)
    if (from === -1) return [...hunks, { leftOut: lines.length - at, from: lines.length, lines: [] }]
    const next = near.indexOf(false, from)
    const to = next === -1 ? lines.length : next
    hunks.push({ leftOut: from - at, from, lines: lines.slice(from, to) })
    at = to
  }
  return hunks
}

/** The problems in a configuration, with their lines and columns. */
export function Problems({
  problems,
  onGo,
}: {
  readonly problems: readonly ConfigurationProblem[]
  /** Moves the cursor to a problem. Without this callback, positions are plain text. */
  readonly onGo?: (problem: ConfigurationProblem) => void
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
