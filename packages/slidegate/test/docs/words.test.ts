import { expect, it } from 'vitest'
import { tableOf, wordsIn } from '../../../../scripts/words.js'

// Tests `npm run words`: the words that it counts, and its output.

it.each([
  ['headings, links and inline code count', '# A log\n\nSee [the page](a.md#b), or `npm test`.\n', 8],
  ['code blocks do not count', 'One:\n\n```ts\nconst a = 1\n```\n\n- Two:\n\n  ```\n  three\n  ```\n', 2],
  ['comments and front matter do not count', '---\ntitle: A page\n---\none <!-- two\nthree -->\n', 1],
  ['tables of words count', '| option | use |\n|---|---|\n| `a` | sets a |\n', 5],
  [
    'tables of figures do not count',
    'Rates:\n\n| keys | now | before |\n|---|---|---|\n| one | **1.2** x | 3 ms |\n',
    1,
  ],
  ['an empty page has no words', '', 0],
])('%s', (_, markdown, words) => {
  expect(wordsIn(markdown)).toBe(words)
})

it('folders are sorted, and the total comes last', () => {
  const counts = [
    ['b/1.md', 10],
    ['a/1.md', 2],
    ['b/2.md', 1],
  ] as const
  expect(tableOf(counts, (path) => path[0]!)).toBe('      2  a\n     11  b\n     13  total')
})
