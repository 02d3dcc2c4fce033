import { printable } from '../text.ts'

export interface BadLine {
  readonly line: number
  readonly reason: string
  /** Its beginning, harmless to print. */
  readonly text: string
}

const SHOWN = 5

/** The lines that no request came of: how many, why, and the first few of them. */
export class Skipped {
  count = 0
  readonly reasons: Map<string, number> = new Map()
  readonly first: BadLine[] = []

  add(line: number, reason: string, text: string): void {
    this.count++
    this.reasons.set(reason, (this.reasons.get(reason) ?? 0) + 1)
    if (this.first.length < SHOWN) this.first.push({ line, reason, text: printable(text) })
  }
}
