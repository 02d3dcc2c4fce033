import type { AuditTold } from '../told.ts'
import { Badge } from './status.tsx'

const TONES = { done: 'good', failed: 'bad', unknown: 'warn' } as const

/** How a change has ended. */
export function AuditResult({ result, error }: Pick<AuditTold, 'result' | 'error'>) {
  return (
    <>
      <Badge tone={TONES[result]}>{result === 'unknown' ? 'not known' : result}</Badge>
      {error !== undefined && ` ${error}`}
    </>
  )
}
