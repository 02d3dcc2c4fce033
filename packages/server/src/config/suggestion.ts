// Suggests the intended name for an unknown one.

/** Maximum number of names to list. */
const SHOWN = 20

/** Joins words: `a, b or c`. */
export function listed(words: readonly unknown[]): string {
  const texts = words.map(String)
  return texts.length === 1 ? texts[0]! : `${texts.slice(0, -1).join(', ')} or ${texts.at(-1)}`
}

export function suggestion(name: string, known: readonly string[]): string {
  const near = nearest(name, known)
  return near === undefined
    ? `${known.length === 0 ? 'none are defined' : `expected ${listed(known.slice(0, SHOWN))}`}`
    : `did you mean ${near}?`
}

/** Returns the known word that is most similar, or undefined if none is similar enough. */
export function nearest(word: string, known: readonly string[]): string | undefined {
  const most = Math.floor((word.length + 1) / 3)
  let best: string | undefined
  let fewest = most + 1
  for (const candidate of known) {
    if (Math.abs(candidate.length - word.length) >= fewest) continue
    const changes = changesBetween(word.toLowerCase(), candidate.toLowerCase())
    if (changes < fewest) {
      best = candidate
      fewest = changes
    }
  }
  return best
}

/** Returns the Levenshtein distance, but counts swapping two adjacent characters as one change. */
function changesBetween(a: string, b: string): number {
  let before: number[] = []
  let last = Array.from({ length: b.length + 1 }, (_, i) => i)
  for (let i = 1; i <= a.length; i++) {
    const row = [i]
    for (let j = 1; j <= b.length; j++) {
      const isSame = a[i - 1] === b[j - 1]
      let least = Math.min(last[j]! + 1, row[j - 1]! + 1, last[j - 1]! + (isSame ? 0 : 1))
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1])
        least = Math.min(least, before[j - 2]! + 1)
      row.push(least)
    }
    before = last
    last = row
  }
  return last[b.length]!
}
