/** @typedef {import('./findings.js').Finding} Finding */
/** @typedef {import('./ratchet.js').Change} Change */

const MOST = 30

/** @param {Finding} finding */
export const lineOf = ({ path, line, column, rule, excerpt, instead }) =>
  `${path}:${line}:${column}  ${rule}  ${excerpt} → ${instead}`

/** @param {number} count @param {string} noun */
export const counted = (count, noun) => `${count.toLocaleString('en')} ${noun}${count === 1 ? '' : 's'}`

/**
 * Describes the rules with more findings than recorded. Findings on changed lines come first; others fill up if those
 * do not explain the rise.
 * @param {readonly Change[]} risen
 * @param {readonly Finding[]} findings
 * @param {(path: string, line: number) => boolean} isChanged
 * @returns {string}
 */
export function risesOf(risen, findings, isChanged) {
  const shown = risen.flatMap(({ rule, before, now }) => {
    const all = findings.filter((finding) => finding.rule === rule)
    const changed = all.filter(({ path, line }) => isChanged(path, line))
    const rise = now - before
    return changed.length >= rise
      ? changed
      : [...changed, ...all.filter((finding) => !changed.includes(finding))]
  })
  return [
    ...shown.slice(0, MOST).map(lineOf),
    ...(shown.length > MOST ? [`... and ${counted(shown.length - MOST, 'more finding')}`] : []),
    '',
    ...risen.map(({ rule, before, now }) => `${rule}: ${before} → ${now}`),
  ].join('\n')
}
