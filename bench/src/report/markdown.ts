import type { KeptFigure, Results, Run, ScenarioResult } from '../results.ts'
import { summaryOf } from '../results.ts'
import type { Notes } from './notes.ts'
import type { Plot } from './plot.ts'
import { measuredText, spreadText, targetText } from './text.ts'

/** Returns the benchmark page: how to read it, targets, machines and scenarios. */
export function reportOf(results: Results, notes: Notes): string {
  const { scenarios } = results
  return `${[
    '# Benchmarks',
    'See what a decision costs, compared with the cheapest possible call, other packages and common Redis scripts. The scenario [truth](#truth) shows how exact each limiter is. [The comparison](../comparison.md) covers other differences.',
    '`npm run bench -- --full --report` generates this page from [results.json](results.json) and the explanations in [notes.md](notes.md). Do not edit the page, because the next run overwrites it.',
    ...HOW_TO_READ,
    ...headlinesOf(results),
    '## Measured on',
    'Redis ran on the same machine, without persistence.',
    ...machinesOf(scenarios),
    ...scenarios.flatMap((scenario) => sectionOf(scenario, notes)),
  ].join('\n\n')}\n`
}

const HOW_TO_READ: readonly string[] = [
  '## How to read it',
  'Figures are ratios measured within one run. In each round, the two sides take turns. A figure is the median of all rounds, unless its scenario defines it differently. "Rounds" shows the lowest and highest ratios. If they are far apart, other programs were using the machine. Absolute numbers in plots and notes only indicate an order of magnitude. Higher rates, shorter times and smaller sizes are better. [The benchmarks\' README](../../bench/README.md) describes how each scenario measures.',
  'In plots, slidegate is blue, other packages and common scripts are gray, and floors are sand-colored. No limiter on the same client can cost less than the floor.',
  '## How to repeat it',
  '```sh\nnpm ci\nnpm run bench                                   # short run: prints tables, in six minutes\nnpm run bench -- --full --report                # full run: writes this page\nnpm run bench -- truth --full --report          # one scenario: keeps the other results\nnpm run bench -- --from docs/benchmarks/results.json --report    # no run: writes this page from the results\n```',
  'You need Node and `redis-server` 7.0 or later. Each scenario below shows its own command.',
]

function headlinesOf(results: Results): string[] {
  const rows = results.scenarios.flatMap(({ name, figures }) =>
    figures
      .filter(({ target }) => target !== undefined)
      .map((figure) => [
        `[${name}](#${name})`,
        figure.name,
        targetText(figure),
        measuredText(figure),
        spreadText(figure),
        verdictOf(figure),
      ]),
  )
  return [
    '## Targets',
    `${summaryOf(results)}.`,
    table(['scenario', 'figure', 'target', 'measured', 'rounds', ''], rows),
  ]
}

function machinesOf(scenarios: readonly ScenarioResult[]): string[] {
  const machines = new Map<string, ScenarioResult[]>()
  for (const scenario of scenarios) {
    const key = JSON.stringify(scenario.run.machine)
    machines.set(key, [...(machines.get(key) ?? []), scenario])
  }
  return Array.from(machines.values(), (measured) => {
    const { cores, cpu, memoryGiB, system, versions } = measured[0]!.run.machine
    const installed = Object.entries(versions).map(([name, version]) => `${name} ${version}`)
    return [
      `${cores} x ${cpu}, ${memoryGiB} GiB, ${system}; ${installed.join(', ')}:`,
      listOf(runsOf(measured)),
    ]
  }).flat()
}

function runsOf(scenarios: readonly ScenarioResult[]): string[] {
  const runs = new Map<string, { run: Run; names: string[] }>()
  for (const { name, run } of scenarios) {
    const known = runs.get(run.startedAt) ?? { run, names: [] }
    known.names.push(name)
    runs.set(run.startedAt, known)
  }
  return Array.from(runs.values(), ({ run, names }) => {
    const { startedAt, mode, isPinned, load } = run
    const pinned = isPinned ? ', with client and Redis pinned to cores' : ''
    return `${startedAt.slice(0, 10)}, ${mode} run${pinned}, load ${load.toFixed(1)} at the start: ${names.join(', ')}`
  })
}

function sectionOf(scenario: ScenarioResult, notes: Notes): string[] {
  const { name, title, figures, plots, error } = scenario
  const note = notes.get(name)
  const rows = figures.map((figure) => [
    figure.name,
    measuredText(figure),
    spreadText(figure),
    targetText(figure),
    verdictOf(figure),
    figure.note ?? '',
  ])
  const missed = figures.filter(({ reached }) => reached === false)
  return [
    `## ${name}`,
    `${title}. Command: \`${commandOf(scenario)}\`.`,
    ...(note === undefined || note.text === '' ? [] : [note.text]),
    ...(error === undefined ? [] : [`Failed: \`${error.split('\n')[0]}\``]),
    ...(rows.length === 0 ? [] : [table(['', 'measured', 'rounds', 'target', '', 'in numbers'], rows)]),
    ...plots.flatMap(plotOf),
    ...missed.map(({ name }) => `**${name}**: missed. ${note?.figures.get(name) ?? 'Not explained yet.'}`),
  ]
}

function commandOf({ name, run: { mode, isPinned } }: ScenarioResult): string {
  return [
    'npm run bench --',
    name,
    ...(mode === 'full' ? ['--full'] : []),
    ...(isPinned ? ['--pin'] : []),
    '--report',
  ].join(' ')
}

function plotOf({ name, title, note }: Plot): string[] {
  return [`![${title}](${name}.svg)`, ...(note === undefined ? [] : [note])]
}

function verdictOf({ reached }: KeptFigure): string {
  return { true: 'reached', false: '**missed**', undefined: '' }[`${reached}`]!
}

function listOf(items: readonly string[]): string {
  return items.map((item) => `- ${item}`).join('\n')
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) =>
    `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`
  return [line(head), line(head.map(() => '---')), ...rows.map(line)].join('\n')
}
