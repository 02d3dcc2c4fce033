/** @typedef {Record<string, number>} Counts findings by rule */
/** @typedef {{ total: number, rules: Counts }} Recorded */
/** @typedef {{ rule: string, before: number, now: number }} Change */

/**
 * Counts findings by rule, rules without any included.
 * @param {readonly string[]} rules
 * @param {readonly { rule: string }[]} findings
 * @returns {Counts}
 */
export function countsOf(rules, findings) {
  /** @type {Counts} */
  const counts = Object.fromEntries([...rules].sort().map((rule) => [rule, 0]))
  for (const { rule } of findings) counts[rule] = (counts[rule] ?? 0) + 1
  return counts
}

/**
 * Compares counts with the recorded ones.
 * @param {Counts} recorded
 * @param {Counts} counts
 * @returns {{ risen: Change[], fallen: Change[], added: string[], removed: string[] }} `added`: rules that have no
 *   recorded count yet
 */
export function compare(recorded, counts) {
  const changes = Object.entries(counts)
    .filter(([rule]) => Object.hasOwn(recorded, rule))
    .map(([rule, now]) => ({ rule, before: recorded[rule] ?? 0, now }))
  return {
    risen: changes.filter(({ before, now }) => now > before),
    fallen: changes.filter(({ before, now }) => now < before),
    added: Object.keys(counts).filter((rule) => !Object.hasOwn(recorded, rule)),
    removed: Object.keys(recorded).filter((rule) => !Object.hasOwn(counts, rule)),
  }
}

/** @param {Counts} counts @returns {string} the text of `findings.json` */
export function recordOf(counts) {
  const total = Object.values(counts).reduce((sum, count) => sum + count, 0)
  return `${JSON.stringify({ total, rules: counts }, undefined, 2)}\n`
}
