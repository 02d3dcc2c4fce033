import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { reportOf } from '../src/report/markdown.ts'
import { parseNotes, strayNotes } from '../src/report/notes.ts'
import { REPORT_FOLDER, readResults, writeReport } from '../src/report/write.ts'
import type { Results, Run, ScenarioResult } from '../src/results.ts'

const MACHINE = { versions: { node: 'v20' }, cpu: 'a CPU', cores: 2, memoryGiB: 4, system: 'linux' }

const RUN: Run = {
  machine: MACHINE,
  startedAt: '2026-01-02T03:04:05.000Z',
  mode: 'short',
  isPinned: false,
  load: 0.25,
}

const SPEED: ScenarioResult = {
  name: 'speed',
  title: 'Speed of a decision',
  run: RUN,
  seconds: 1,
  figures: [
    {
      name: 'against | the floor',
      value: 1.234,
      unit: 'x',
      target: { atLeast: 2 },
      spread: [1.1, 1.3],
      raw: { ratios: [1.1, 1.2345678, 1.3] },
      reached: false,
    },
    { name: 'bytes', value: 12, unit: 'bytes', target: { atMost: 20 }, raw: {}, reached: true },
  ],
  plots: [
    {
      kind: 'bars',
      name: 'speed-bars',
      title: 'Rates',
      axis: { label: 'per second' },
      series: [''],
      bars: [
        { label: 'slidegate', role: 'ours', values: [2000] },
        { label: 'another', role: 'peer', values: [0.5] },
      ],
    },
    {
      kind: 'lines',
      name: 'speed-lines',
      title: 'Growth',
      x: { label: 'limit', isLog: true },
      y: { label: 'time' },
      lines: [
        {
          label: 'slidegate',
          role: 'ours',
          points: [
            [10, 1],
            [1000, 2],
          ],
        },
      ],
    },
  ],
}

const RESULTS: Results = { scenarios: [SPEED] }

const NOTES = '# For writers\n\n## speed\n\nOn all figures.\n\n### against | the floor\n\nOn this one.\n'

describe('the report', () => {
  let folder: string
  const read = (name: string) => readFile(join(folder, name), 'utf8')

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'slidegate-report-'))
    await writeFile(join(folder, 'notes.md'), NOTES)
  })
  afterEach(() => rm(folder, { recursive: true }))

  it('shows targets, measured values, their spread, and notes on missed targets', async () => {
    expect(await writeReport(RESULTS, ['speed'], folder)).toEqual([])
    const page = await read('README.md')
    expect(page).toContain('1 of 2 targets reached.')
    expect(page).toContain('against \\| the floor | >= 2 x | 1.23 x | 1.10 .. 1.30 | **missed** |')
    expect(page).toContain('On all figures.')
    expect(page).toContain('On this one.')
    expect(page).toContain('![Rates](speed-bars.svg)')
    expect(await read('notes.md')).toBe(NOTES)
  })

  it('warns about missed targets without a note, and notes on unknown names', async () => {
    await writeFile(join(folder, 'notes.md'), '## speed\n\n### another figure\n\nOld.\n')
    expect(await writeReport(RESULTS, ['speed'], folder)).toEqual([
      'Missed target without an explanation in notes.md: speed: against | the floor',
      'notes.md has a note on an unknown name: speed: another figure',
    ])
  })

  it('draws plots as well-formed SVG with titles and labels', async () => {
    await writeReport(RESULTS, ['speed'], folder)
    const bars = await read('speed-bars.svg')
    for (const text of ['Rates', 'slidegate', 'another', 'per second', '2,000', '0.5']) {
      expect(bars).toContain(`>${text}</text>`)
    }
    expect(await read('speed-lines.svg')).toContain('>limit (logarithmic)</text>')
    // A quote would end the attribute.
    for (const svg of [bars, await read('speed-lines.svg')]) expect(svg).not.toMatch(/="[^"]*"[^\s/>?]/)
  })

  it('stays the same when it is rewritten from its results', async () => {
    await writeReport(RESULTS, ['speed'], folder)
    const before = await Promise.all((await readdir(folder)).map(read))
    await writeReport(await readResults(join(folder, 'results.json')), ['speed'], folder)
    expect(await Promise.all((await readdir(folder)).map(read))).toEqual(before)
  })

  it('keeps the results of other scenarios, with the machine and command of each', async () => {
    const order = ['size', 'speed']
    await writeReport(RESULTS, order, folder)
    const machine = { ...MACHINE, cores: 64, versions: { node: 'v24' } }
    const run: Run = { ...RUN, machine, startedAt: '2026-02-03T04:05:06.000Z', mode: 'full', isPinned: true }
    await writeReport({ scenarios: [{ ...SPEED, name: 'size', plots: [], run }] }, order, folder)

    const { scenarios } = await readResults(join(folder, 'results.json'))
    expect(scenarios.map(({ name }) => name)).toEqual(order)
    const page = await read('README.md')
    expect(page).toContain(
      '64 x a CPU, 4 GiB, linux; node v24:\n\n- 2026-02-03, full run, with client and Redis pinned to cores, load 0.3 at the start: size\n',
    )
    expect(page).toContain(
      '2 x a CPU, 4 GiB, linux; node v20:\n\n- 2026-01-02, short run, load 0.3 at the start: speed\n',
    )
    expect(page).toContain('Command: `npm run bench -- size --full --pin --report`.')
    expect(page).toContain('Command: `npm run bench -- speed --report`.')
    expect(await readdir(folder)).toContain('speed-bars.svg')
  })

  it('replaces the earlier results of a scenario', async () => {
    await writeReport(RESULTS, ['speed'], folder)
    await writeReport({ scenarios: [{ ...SPEED, plots: [] }] }, ['speed'], folder)
    expect((await readResults(join(folder, 'results.json'))).scenarios.length).toBe(1)
    expect(await readdir(folder)).not.toContain('speed-bars.svg')
  })
})

describe('the report in docs/benchmarks', () => {
  it('matches its results and notes', async () => {
    const read = (name: string) => readFile(join(REPORT_FOLDER, name), 'utf8')
    const results = await readResults(join(REPORT_FOLDER, 'results.json'))
    const notes = parseNotes(await read('notes.md'))
    expect(await read('README.md')).toBe(reportOf(results, notes))
    const plots = results.scenarios.flatMap(({ plots }) => plots.map(({ name }) => `${name}.svg`))
    const drawn = (await readdir(REPORT_FOLDER)).filter((name) => name.endsWith('.svg'))
    expect(drawn.toSorted()).toEqual(plots.toSorted())
  })
})

describe('notes', () => {
  it('belong to scenarios and figures', () => {
    const notes = parseNotes(NOTES)
    expect(notes.get('speed')?.text).toBe('On all figures.')
    expect(notes.get('speed')?.figures.get('against | the floor')).toBe('On this one.')
    expect(strayNotes(notes, [])).toEqual(['speed'])
  })

  it('cause an error if two have the same name', () => {
    expect(() => parseNotes('## a\n\n## a\n')).toThrow('notes.md has two notes on a')
    expect(() => parseNotes('## a\n### b\n\n### b\n')).toThrow('notes.md has two notes on one figure of a')
  })
})
