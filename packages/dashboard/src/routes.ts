// The part of page addresses after the #. Names in it may contain slashes and percent signs.

import { useHashLocation } from 'wouter-preact/use-hash-location'

/**
 * The path after the #, for the router. The router decodes a path before it matches routes, so percent signs are
 * escaped here, and pages decode their parameters with `decodeParameter`.
 */
export function useHashRoute(): ReturnType<typeof useHashLocation> {
  const [place, navigate] = useHashLocation()
  return [place.replaceAll('%', '%25'), navigate]
}

/** Decodes a route parameter. Returns it unchanged if its encoding is invalid. */
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

export function findHref(key: string): string {
  return `#/find/${encodeURIComponent(key)}`
}

/** @param dimension only for limiters with dimensions */
export function keyHref(limiter: string, key: string, dimension?: string): string {
  const of = dimension === undefined ? '' : `${encodeURIComponent(dimension)}/`
  return `${limiterHref(limiter)}/keys/${of}${encodeURIComponent(key)}`
}
