import fc from 'fast-check'

/** Any character, as a unit for `fc.string`. Its own unit `binary` first lists all of them, for seconds per process. */
export const anyCharacter: fc.Arbitrary<string> = fc
  .integer({ min: 0, max: 0x10f7ff })
  // Leaves out halves of surrogate pairs.
  .map((code) => String.fromCodePoint(code < 0xd800 ? code : code + 0x800))
