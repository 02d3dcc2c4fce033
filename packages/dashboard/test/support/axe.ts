import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { TestWindow } from './browser.ts'

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

interface Violation {
  readonly id: string
  readonly impact: string
  readonly help: string
  readonly nodes: readonly { readonly html: string; readonly failureSummary: string }[]
}

/** Resolves after several frames. A page reacts to a new size one frame after its layout. */
const FRAMES = `new Promise((resolve) => {
  const wait = (frames) => (frames === 0 ? resolve() : requestAnimationFrame(() => wait(frames - 1)))
  wait(4)
})`

/** The axe violations of a page. */
export async function violationsIn({ page }: TestWindow): Promise<string[]> {
  // Through the protocol, because the page's policy forbids other scripts.
  if (await page.evaluate("typeof axe === 'undefined'")) await page.evaluate(AXE)
  await page.evaluate(FRAMES)
  const { violations } = await page.evaluate<{ violations: Violation[] }>(
    "axe.run({ resultTypes: ['violations'] })",
  )
  return violations.map(
    ({ id, impact, help, nodes }) =>
      `${impact} ${id}: ${help}\n${nodes.map(({ html, failureSummary }) => `  ${html}\n  ${failureSummary}`).join('\n')}`,
  )
}
