// A key with a link to its page.

import { keyHref } from '../routes.ts'

/** Matches a key that the service has shortened to its beginning and a hash. */
const CUT = /^.{38,}\.\.\.~[\w-]{22}$/s

/** Whether a key was shortened, which means that it can't be looked up. */
export function isCut(key: string): boolean {
  return CUT.test(key)
}

export function KeyLink({
  limiter,
  of: { key, dimension },
  hasPage = true,
}: {
  readonly limiter: string
  readonly of: { readonly key: string; readonly dimension?: string }
  readonly hasPage?: boolean
}) {
  return (
    <>
      {dimension !== undefined && <span class="muted">{dimension} </span>}
      {hasPage && !isCut(key) ? (
        <a class="mono" href={keyHref(limiter, key, dimension)}>
          {key}
        </a>
      ) : (
        <span class="mono">{key}</span>
      )}
    </>
  )
}
