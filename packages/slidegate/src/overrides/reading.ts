import { StoreUnavailableError } from '../errors.ts'
import type { Notes, NotesAsked } from '../limits/limit.ts'
import type { KnownOverrides } from './known-overrides.ts'

export type Reading = Generator<NotesAsked, readonly string[], Notes>

/** No table has nearly as many: a store that tells more would be asked for ever. */
export const MAX_PAGES: number = 4096

/** What a read asks for, as long as there may be an end to it. */
export function* reading(known: KnownOverrides): Reading {
  const pages = readingOn(known)
  let step = pages.next()
  for (let asked = 0; step.done !== true; asked++) {
    if (asked === MAX_PAGES) {
      throw new StoreUnavailableError('error', `the store has told overrides in more than ${MAX_PAGES} pages`)
    }
    step = pages.next(yield step.value)
  }
  return step.value
}

/**
 * One read of a table: asks for page after page, and answers the names of notes that cannot be read. What was changed is
 * known with each page; all there is only when it has been told to its end, with what was written meanwhile.
 */
function* readingOn(known: KnownOverrides): Reading {
  let page = yield { since: known.version }
  if (page.isAll) return yield* readingAll(known, page)
  const damaged = [...known.learn(page)]
  while (page.next !== undefined) {
    page = yield page.next
    // So much was changed meanwhile that all is told.
    if (page.isAll) return [...damaged, ...(yield* readingAll(known, page))]
    damaged.push(...known.learn(page))
  }
  return damaged
}

function* readingAll(known: KnownOverrides, first: Notes): Reading {
  const all = known.begin()
  all.add(first)
  let page = first
  while (page.next !== undefined) {
    page = yield page.next
    all.add(page)
  }
  if (page === first) return known.replace(all, first.version)

  const { size = 0 } = page
  const changes: Notes[] = []
  let asked: NotesAsked | undefined = { since: first.version }
  while (asked !== undefined) {
    const later: Notes = yield asked
    // Too much was changed to be told one by one: the next read begins anew.
    if (later.isAll) return known.replace(all, 0)
    changes.push(later)
    asked = later.next
  }
  const changed = changes.reduce((sum, { notes }) => sum + notes.length, 0)
  const surplus = all.names.size - size
  if (Math.abs(surplus - known.surplus) > changed) {
    known.surplus = surplus
    throw new StoreUnavailableError(
      'error',
      `the store has told ${all.names.size} overrides of ${size}: it was another server in between`,
    )
  }
  return [known.replace(all, first.version), ...changes.map((each) => known.learn(each))].flat()
}
