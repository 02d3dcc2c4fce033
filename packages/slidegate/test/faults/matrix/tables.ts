import { CLIENTS, connectorOf } from './clients.ts'
import type { Place } from './fault.ts'
import { FAULTS } from './faults.ts'
import type { Result } from './result.ts'
import { SLOW_CLIENTS } from './slow-clients.ts'
import { TIMEOUT_MS } from './subject.ts'

/** Faults of these places share a table. */
const TABLES: readonly { readonly title: string; readonly places: readonly Place[] }[] = [
  { title: 'One server', places: ['server', 'proxy'] },
  { title: 'A primary and a replica, watched by Sentinel', places: ['sentinel'] },
  { title: 'A Cluster of three primaries and three replicas', places: ['cluster'] },
]

const CAPTION = `With \`timeoutMs\` ${TIMEOUT_MS}:

- *meanwhile*: the errors during the fault with the policy \`throw\`, and the share of requests that Redis didn't decide;
- *p99*: the 99th percentile of call times in milliseconds, for the worst client and policy;
- other columns: milliseconds until Redis decides all requests again;
- *set*: with [these settings](production.md#client-settings) instead of defaults.
`

export function tablesOf(results: readonly Result[]): string {
  const tables = TABLES.map(({ title, places }) => {
    const table = tableOf(results, places)
    return table === '' ? '' : `\n### ${title}\n\n${table}`
  })
  const notes = SLOW_CLIENTS.map(({ why }, i) => `${i + 1}. ${why[0]!.toUpperCase()}${why.slice(1)}.\n`)
  return `${[CAPTION, ...tables, '\nClients that recover late:\n\n', ...notes].join('')}\n`
}

/** Returns the numbers of the notes on a client that may be slow to recover. */
function notesOf(fault: string, client: string): string {
  const numbers = SLOW_CLIENTS.flatMap(({ faults, clients }, i) =>
    faults.includes(fault) && clients.includes(client) ? [i + 1] : [],
  )
  return numbers.map((number) => `<sup>${number}</sup>`).join('')
}

function tableOf(results: readonly Result[], places: readonly Place[]): string {
  const faults = FAULTS.filter(
    ({ on, name }) => places.includes(on) && results.some(({ fault }) => fault === name),
  )
  if (faults.length === 0) return ''
  const clients = CLIENTS.filter((client) => connectorOf(client, places[0]!) !== undefined)
  const rows = faults.map(({ name, title }) => {
    const ofFault = results.filter(({ fault }) => fault === name)
    const p99Ms = Math.max(...ofFault.map(({ p99Ms }) => p99Ms))
    const back = clients.map((client) => {
      const result = ofFault.find((result) => result.client === client.name)
      return backOf(result) + notesOf(name, client.name)
    })
    return [title, meanwhile(ofFault), `${p99Ms}`, ...back]
  })
  const head = ['fault', 'meanwhile', 'p99', ...clients.map(({ title }) => title)]
  const rule = head.map((_, i) => (i < 2 ? '---' : '---:'))
  return `${[head, rule, ...rows].map((cells) => `| ${cells.join(' | ')} |`).join('\n')}\n`
}

function meanwhile(results: readonly Result[]): string {
  const felt = results.map(({ feltPercent }) => feltPercent)
  const [least, most] = [Math.min(...felt), Math.max(...felt)]
  if (most <= 1) return 'nothing'
  const reasons = new Set(results.flatMap((result) => result.reasons.split(' ')).filter(Boolean))
  const percent = least === most ? `${most}%` : `${least} to ${most}%`
  return `${[...reasons].map((reason) => `\`${reason}\``).join(', ')}: ${percent}`
}

function backOf(result: Result | undefined): string {
  if (result === undefined) return ''
  return result.backMs < 0 ? 'never' : `${result.backMs}`
}
