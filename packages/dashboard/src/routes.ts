// Addresses of pages, behind the #. Names in them keep slashes and percent signs.

import { useHashLocation } from 'wouter-preact/use-hash-location'

/**
 * The place behind the #, for the router. It decodes a path before it matches it; said twice, a name that has a percent sign
 * or a slash of its own comes out as it was. Pages decode their parameters by `decodeParameter`.
 */
export function useHashRoute(): ReturnType<typeof useHashLocation> {
  const [place, navigate] = useHashLocation()
  return [place.replaceAll('%', '%25'), navigate]
}

/** A parameter of a place, as it was before it was encoded; one that nobody has encoded as it stands. */
export function decodeParameter(parameter: string): string {
  try {
    return decodeURIComponent(parameter)
  } catch {
    return parameter
  }
}

export function limiterHref(limiter: string): string {
  return `#/limiters/${encodeURIComponent(limiter)}`
}

/** @param dimension of limiters that have some */
export function keyHref(limiter: string, key: string, dimension?: string): string {
  const of = dimension === undefined ? '' : `${encodeURIComponent(dimension)}/`
  return `${limiterHref(limiter)}/keys/${of}${encodeURIComponent(key)}`
}
