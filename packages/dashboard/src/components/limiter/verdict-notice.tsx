import type { History } from '../../../../server/src/admin/overview.ts'
import type { TopTold } from '../../told.ts'
import { verdictOf } from '../../verdict.ts'
import { Notice, type Tone } from '../status.tsx'

const TONES: Readonly<Record<ReturnType<typeof verdictOf>['kind'], Tone>> = {
  none: 'good',
  few: 'plain',
  concentrated: 'warn',
  spread: 'warn',
  distributed: 'warn',
  unclear: 'plain',
}

/** Abuse, or a limit set too low. */
export function VerdictNotice({
  history,
  denials,
}: {
  readonly history: History | undefined
  readonly denials: TopTold | undefined
}) {
  if (history === undefined || denials === undefined) return null
  const { distinct: callers = 0, overMs, keys } = denials
  // The same time as that of the keys, or all that is known where nobody was denied.
  const seconds = overMs === 0 ? history.seconds.length : Math.ceil(overMs / 1000)
  const sum = (column: readonly number[]) => column.slice(-seconds).reduce((all, each) => all + each, 0)
  const denied = sum(history.denied)
  const requests = denied + sum(history.allowed)
  const verdict = verdictOf({ overMs: 1000 * seconds, requests, denied, callers, denials: keys })
  return (
    <Notice tone={TONES[verdict.kind]}>
      <p data-verdict={verdict.kind}>
        <strong>Abuse, or a limit that is too low?</strong> {verdict.text}
      </p>
    </Notice>
  )
}
