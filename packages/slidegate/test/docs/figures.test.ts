import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { anchors, pages, ROOT } from './markdown.ts'

// Figures in the documentation match the bench: the numbers in a link to a section of its report are in that section, or
// round to one that is.

const REPORT = readFileSync(join(ROOT, 'docs/benchmarks/README.md'), 'utf8')

const LINK = /\[([^\]]*\d[^\]]*)\]\([./\w]*benchmarks\/README\.md#([\w-]+)\)/g

const numbersIn = (text: string) =>
  Array.from(text.matchAll(/\d[\d,]*(?:\.\d+)?/g), ([number]) => number.replaceAll(',', ''))

const sections = new Map(
  REPORT.split(/^(?=## )/m).map((section) => [anchors(section)[0], numbersIn(section).map(Number)]),
)

const told = pages()
  .filter(({ path }) => !path.includes('benchmarks/'))
  .flatMap(({ path, text }) =>
    Array.from(text.matchAll(LINK), ([, words, section]) => [path, words!, section!] as const),
  )

it.each(told)('%s: %s', (_, words, section) => {
  const measured = sections.get(section)!
  const unheard = numbersIn(words).filter((number) => {
    const decimals = number.split('.')[1]?.length ?? 0
    return !measured.some((each) => each.toFixed(decimals) === number)
  })
  expect(unheard).toEqual([])
})

it('there are such figures', () => {
  expect(told.length).toBeGreaterThan(30)
})
