// A link from a warning to its section in the runbook.

import type { AlertName } from './sections.ts'
import { runbookHref } from './sections.ts'

export function RunbookLink({ alert }: { readonly alert: AlertName }) {
  return <a href={runbookHref(alert)}>What to do</a>
}
