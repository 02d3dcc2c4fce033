import { UsageError } from '../errors.ts'
import type { ParseLine } from '../log/json-line.ts'
import { printable } from '../text.ts'

/**
 * Reads only what one limiter has decided; without a name, what all lines are of.
 *
 * @throws {UsageError} at a line of another, where none was named
 */
export function ofLimiter(parse: ParseLine, name: string | undefined): ParseLine {
  let only: string | undefined
  return (text) => {
    const parsed = parse(text)
    if ('bad' in parsed) return parsed
    const { limiter } = parsed
    if (name !== undefined) return limiter === name ? parsed : { bad: 'of another limiter' }
    only ??= limiter
    if (limiter === undefined || limiter === only) return parsed
    const found = [only, limiter].map((each) => `"${printable(each!)}"`).join(' and ')
    throw new UsageError(
      `there are requests of several limiters, such as ${found}; choose one with --limiter`,
    )
  }
}
