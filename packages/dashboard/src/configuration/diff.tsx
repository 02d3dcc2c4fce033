import { Fragment } from 'preact'
import type { DiffLine } from '../../../server/src/admin/overview.ts'
import { count } from '../format.ts'
import { hunksOf } from './hunks.ts'

const SIGNS = { same: ' ', added: '+', removed: '−' } as const

/** What is added and what is removed: by a sign and a word, and by colour besides. */
export function Diff({ label, lines }: { readonly label: string; readonly lines: readonly DiffLine[] }) {
  const linesThatAre = (kind: DiffLine['kind']) => lines.filter((line) => line.kind === kind).length
  return (
    <figure class="diff">
      <figcaption>
        {label}: lines added {count(linesThatAre('added'))}, removed {count(linesThatAre('removed'))}.
      </figcaption>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls has to be reached by the keyboard */}
      <section class="scrolled code" aria-label={label} tabIndex={0}>
        <ol>
          {hunksOf(lines).map(({ leftOut, from, lines }) => (
            <Fragment key={from}>
              {leftOut > 0 && <li class="left-out">… {count(leftOut)} lines are the same</li>}
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
