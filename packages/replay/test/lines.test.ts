import fc from 'fast-check'
import { expect, it } from 'vitest'
import { MAX_LINE_CHARS, splitLines } from '../src/log/split-lines.ts'

async function linesOf(chunks: readonly Buffer[]): Promise<string[]> {
  async function* source() {
    yield* chunks
  }
  const lines: string[] = []
  for await (const portion of splitLines(source())) lines.push(...portion)
  return lines
}

function cutUp(bytes: Buffer, cuts: readonly number[]): Buffer[] {
  const at = [0, ...cuts.map((cut) => cut % (bytes.length + 1)).sort((a, b) => a - b), bytes.length]
  return at.slice(1).map((end, i) => bytes.subarray(at[i], end))
}

it('the line splitter returns the same lines for any chunks', async () => {
  const text = fc.array(fc.oneof(fc.string({ unit: 'grapheme' }), fc.constantFrom('', 'é€😀', 'a\r')), {
    maxLength: 8,
  })
  await fc.assert(
    fc.asyncProperty(text, fc.array(fc.nat(), { maxLength: 20 }), fc.boolean(), async (parts, cuts, ends) => {
      const whole = parts.join('\n') + (ends ? '\n' : '')
      const expected = whole.replace(/^\uFEFF/, '').split('\n')
      if (expected.at(-1) === '') expected.pop()
      expect(await linesOf(cutUp(Buffer.from(whole), cuts))).toEqual(
        expected.map((line) => line.replace(/\r$/, '')),
      )
    }),
  )
})

it('the line splitter cuts an overlong line and continues with the next one', async () => {
  const endless = Buffer.alloc(300_000, 'x')
  const lines = await linesOf([
    Buffer.from('first\n'),
    ...Array.from({ length: 10 }, () => endless),
    Buffer.from('\nlast'),
  ])
  expect(lines.map((line) => line.length)).toEqual([5, MAX_LINE_CHARS + 1, 4])
})

it('the line splitter drops a byte order mark', async () => {
  expect(await linesOf([Buffer.from('\uFEFF{"a":1}\n\uFEFFb\n')])).toEqual(['{"a":1}', '\uFEFFb'])
})
