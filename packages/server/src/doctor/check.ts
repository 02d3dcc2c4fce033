// The checks that slidegate doctor makes, and how their results are printed.

import { formatCount, printable } from '../../../replay/src/text.ts'

export type Status = 'ok' | 'warning' | 'problem' | 'skipped'

export interface Check {
  /** The checked component: a Redis server, the service or the configuration. */
  readonly target: string
  readonly name: string
  readonly status: Status
  /** The value found. */
  readonly value: string
  /** The expected value, unless the status is `ok`. */
  readonly expected?: string
  /** The command or setting that fixes the problem. */
  readonly fix?: string
  /** A documentation page in the repository, with an anchor. */
  readonly docs?: string
}

export interface Diagnosis {
  readonly problems: number
  readonly warnings: number
  readonly checks: readonly Check[]
}

export function diagnosisOf(checks: readonly Check[]): Diagnosis {
  const count = (status: Status) => checks.filter((check) => check.status === status).length
  return { problems: count('problem'), warnings: count('warning'), checks }
}

/** Formats a diagnosis: a block of lines per target, then the totals. */
export function diagnosisLines({ problems, warnings, checks }: Diagnosis): string[] {
  const width = Math.max(...checks.map(({ name }) => name.length))
  const lines = checks.flatMap(({ target, name, status, value, expected, fix, docs }, i) => {
    const row = (head: string, label: string, text: string) =>
      `  ${head.padEnd(7)}  ${label.padEnd(width)}  ${printable(text, 1000)}`
    const more = { 'should be': expected, fix, see: docs }
    return [
      ...(target === checks[i - 1]?.target ? [] : [...(i === 0 ? [] : ['']), printable(target)]),
      row(status, name, value),
      ...Object.entries(more).flatMap(([label, text]) => (text === undefined ? [] : [row('', label, text)])),
    ]
  })
  return [...lines, '', `${counted(problems, 'problem')}, ${counted(warnings, 'warning')}`]
}

/** Formats a number with a noun: `1 problem`, `2 problems`. */
export function counted(count: number, noun: string): string {
  return `${formatCount(count)} ${noun}${count === 1 ? '' : 's'}`
}
