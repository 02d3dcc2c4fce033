// Checks whether a client accepts gzip.

import type { IncomingHttpHeaders } from 'node:http'

/** Whether a client accepts gzip. The header must name gzip: `*` doesn't count. */
export function acceptsGzip(headers: IncomingHttpHeaders): boolean {
  const accepted = String(headers['accept-encoding'] ?? '').toLowerCase()
  return accepted.split(',').some((each) => {
    const [name, ...parameters] = each.split(';').map((word) => word.trim())
    return name === 'gzip' && !parameters.some((word) => /^q=0(\.0*)?$/.test(word))
  })
}
