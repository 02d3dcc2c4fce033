/**
 * Weighs a page in the search. Guides and explanations come first, then reference pages, then generated and internal ones.
 *
 * @param id the address of a page or of a section on it
 */
export function rank(id: string): number {
  const path = id.replace(/#.*$/, '')
  if (/\/(reference|decisions|benchmarks|packages|tools|bench|examples)\//.test(path)) return 0.2
  if (/\/(architecture|contributing|changelog|pages)$/.test(path)) return 0.2
  if (
    /\/migrate\/|\/(comparison|errors|configuration|cli|api|metrics|bounds|state|versions|dependencies)$/.test(
      path,
    )
  )
    return 0.5
  return 1
}
