import { existsSync } from 'node:fs'
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { inJson, merge, type Results } from '../results.ts'
import { drawPlot } from './draw.ts'
import { reportOf } from './markdown.ts'
import { parseNotes, strayNotes } from './notes.ts'

export const REPORT_FOLDER: string = join(import.meta.dirname, '../../../docs/benchmarks')

/**
 * Writes the results, the plots and the page. Returns warnings for the console.
 *
 * Scenarios that weren't measured keep their earlier results. `order` lists the names of all scenarios.
 */
export async function writeReport(
  measured: Results,
  order: readonly string[],
  folder: string = REPORT_FOLDER,
): Promise<string[]> {
  await mkdir(folder, { recursive: true })
  const resultsFile = join(folder, 'results.json')
  const kept = existsSync(resultsFile) ? await readResults(resultsFile) : undefined
  const results = merge(kept, measured, order)

  const notesFile = join(folder, 'notes.md')
  const notes = parseNotes(existsSync(notesFile) ? await readFile(notesFile, 'utf8') : '')
  const plots = results.scenarios.flatMap(({ plots }) => plots)
  await writeFile(resultsFile, inJson(results))
  await writeFile(join(folder, 'README.md'), reportOf(results, notes))
  for (const plot of plots) await writeFile(join(folder, `${plot.name}.svg`), drawPlot(plot))
  for (const file of await readdir(folder)) {
    const isOld = file.endsWith('.svg') && !plots.some(({ name }) => `${name}.svg` === file)
    if (isOld) await rm(join(folder, file))
  }

  const unexplained = results.scenarios.flatMap(({ name, figures }) =>
    figures
      .filter((figure) => figure.reached === false && !notes.get(name)?.figures.has(figure.name))
      .map((figure) => `${name}: ${figure.name}`),
  )
  return [
    ...unexplained.map((name) => `Missed target without an explanation in notes.md: ${name}`),
    ...strayNotes(notes, results.scenarios).map((name) => `notes.md has a note on an unknown name: ${name}`),
  ]
}

export async function readResults(file: string): Promise<Results> {
  return JSON.parse(await readFile(file, 'utf8')) as Results
}
