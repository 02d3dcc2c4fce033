import fc from 'fast-check'

/** The first half of a surrogate pair. Characters have no halves. */
const FIRST = 0xd800
const HALVES = 0x800

/** Any character, as a unit for `fc.string`. Its own unit `binary` first lists all of them, for seconds per process. */
export const anyCharacter: fc.Arbitrary<string> = fc.integer({ min: 0, max: 0x10ffff - HALVES }).map(
  (nth) => String.fromCodePoint(nth < FIRST ? nth : nth + HALVES),
  // With this, `fc.string` also inserts dangerous words such as `__proto__`.
  (character) => {
    const code = (character as string).codePointAt(0)!
    return code < FIRST ? code : code - HALVES
  },
)
