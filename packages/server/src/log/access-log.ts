import { addressKey, UNKNOWN_ADDRESS } from 'slidegate/http'
import type { ParseLine } from './json-line.ts'
import { detachedKey } from './key.ts'
import { parseAccessLogTime } from './time.ts'

// host ident authuser [time] "request" status bytes "referer" "agent": the common format, which the combined
// one continues. Only what is needed has to be there, for servers cut lines short. The quantifiers cannot
// compete for the same character, so garbage is refused in linear time.
const LINE = /^(\S+) \S+ (\S+) \[([^\]]{1,64})\](?: "([^"\\]*(?:\\.[^"\\]*)*))?(?:" (\d{3}))?/

const REQUEST = /^(\S+) (\S+)/

/** What `--key` can be for access logs, and how it is read: from host, authuser, request and status. */
const KEYS: Record<
  string,
  (host: string, user: string, request: string, status: string) => string | undefined
> = {
  ip: callerOf,
  user: (_host, user) => user,
  method: (_host, _user, request) => REQUEST.exec(request)?.[1],
  path: (_host, _user, request) => REQUEST.exec(request)?.[2]?.split('?', 1)[0],
  status: (_host, _user, _request, status) => status,
}

/** Servers that look names up write them in place of addresses. */
function callerOf(host: string): string {
  const key = addressKey(host)
  return key === UNKNOWN_ADDRESS ? host : key
}

export const ACCESS_LOG_KEYS: readonly string[] = Object.keys(KEYS)

/** Reads lines of the common and the combined log format. */
export function accessLogParser(key: string): ParseLine {
  const read = Object.hasOwn(KEYS, key) ? KEYS[key] : undefined
  const noKey = read === undefined ? `no key: access logs have ${ACCESS_LOG_KEYS.join(', ')}` : `no ${key}`
  return (text) => {
    const match = LINE.exec(text)
    if (match === null) return { bad: 'neither an access log line nor a JSON object' }
    const [, host = '', user = '', time = '', request = '', status = ''] = match
    const timeMs = parseAccessLogTime(time)
    if (timeMs === undefined) return { bad: 'no readable time' }
    const value = read?.(host, user, request, status)
    if (value === undefined || value === '' || value === '-') return { bad: noKey }
    return { timeMs, key: detachedKey(value) }
  }
}
