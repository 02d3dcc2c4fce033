/**
 * FNV-1a of a text, over its UTF-16 units. Picks a place in a table; texts that share one are not the same text.
 *
 * @param from a seed, or the hash of the text before
 */
export function textHash(text: string, from: number): number {
  let hash = from
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193)
  return hash
}
