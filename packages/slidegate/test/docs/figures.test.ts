import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { anchors, pages, ROOT } from './markdown.ts'

// A number in a link to a section of the benchmark report must occur in that section, perhaps with more digits.

const REPORT = readFileSync(join(ROOT, 'docs/benchmarks/README.md'), 'utf8')

const LINK = /\[([^\]]*\d[^\]]*)\]\([./\w]*benchmarks\/README\.md#([\w-]+)\)/g

const numbersIn = (text: string) =>
  Array.from(text.matchAll(/\d[\d,]*(?:\.\d+)?/g), ([number]) => number.replaceAll(',', ''))

const sections = new Map(
  REPORT.split(/^(?=## )/m).map((section) => [anchors(section)[0], numbersIn(section).map(Number)]),
)

const links = pages()
  .filter(({ path }) => !path.includes('benchmarks/'))
  .flatMap(({ path, text }) =>
    Array.from(text.matchAll(LINK), ([, words, section]) => [path, words!, section!] as const),
  )

it.each(links)('%s: the figures in "%s" match the report', (_, words, section) => {
  const measured = sections.get(section)!
  const unknown = numbersIn(words).filter((number) => {
    const decimals = number.split('.')[1]?.length ?? 0
    return !measured.some((each) => each.toFixed(decimals) === number)
  })
  expect(unknown).toEqual([])
})

it('the documentation has more than 30 links with figures', () => {
  expect(links.length).toBeGreaterThan(30)
})
