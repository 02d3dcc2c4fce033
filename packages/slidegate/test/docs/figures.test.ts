import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { anchors, pages, ROOT } from './markdown.ts'

// What docs/ideas say was measured is what the bench says now: where a link leads to a section of its report, the numbers of
// the link's words stand there, or round to them.

const REPORT = readFileSync(join(ROOT, 'docs/benchmarks/README.md'), 'utf8')

const LINK = /\[([^\]]*\d[^\]]*)\]\([./\w]*benchmarks\/README\.md#([\w-]+)\)/g

const numbersIn = (text: string) =>
  Array.from(text.matchAll(/\d[\d,]*(?:\.\d+)?/g), ([number]) => number.replaceAll(',', ''))

const sections = new Map(
  REPORT.split(/^(?=## )/m).map((section) => [anchors(section)[0], numbersIn(section).map(Number)]),
)

const told = pages()
  .filter(({ path }) => path.startsWith('docs/ideas/'))
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
