// The traffic of a limiter's keys: requests, denials, and demand compared with the limits.

import { parseDuration } from '../../../replay/src/text.ts'
import type { DeclaredLimit, TopKey, TopKeyList } from '../api-types.ts'
import { decimal } from '../format.ts'

/** The bounds of a number. The bounds differ if the service only estimates the number. */
export interface Range {
  readonly least: number
  readonly most: number
}

/** Formats a range as one number, or as two if the bounds differ: `12 to 15`. */
export function rangeInWords({ least, most }: Range, inWords: (value: number) => string): string {
  const texts = [inWords(least), inWords(most)]
  return texts[0] === texts[1] ? texts[0]! : texts.join(' to ')
}

/** Formats the lower bound of the demand: `26 ×`. */
export function demandInWords({ least }: Range): string {
  return `${decimal(Math.round(least * 100) / 100)} ×`
}

/** A key's traffic in the last few minutes. */
export interface KeyTraffic {
  readonly key: string
  readonly dimension?: string
  readonly requests: Range
  readonly denied: Range
  readonly shareDenied: Range
  /** Requests as a multiple of the number that the limits admit. Undefined if the limits are unknown. */
  readonly demand: Range | undefined
}

/** Joins the lists by key. Keys with the most denials come first. */
export function keyTraffic(
  requests: TopKeyList,
  denials: TopKeyList,
  limits: readonly DeclaredLimit[],
): KeyTraffic[] {
  const spanMs = Math.max(1000, requests.spanMs)
  const rates = limits.flatMap((limit) => (limit.shadow ? [] : (rateOf(limit) ?? [])))
  const requestsOf = new Map(requests.keys.map((key) => [idOf(key), key]))
  const denialsOf = new Map(denials.keys.map((key) => [idOf(key), key]))
  const all = new Map([...denialsOf, ...requestsOf])
  return Array.from(all, ([id, { key, dimension }]) => {
    const asked = rangeOf(requestsOf.get(id), requests.unlisted)
    const refused = rangeOf(denialsOf.get(id), denials.unlisted)
    const least = Math.max(asked.least, refused.least)
    const traffic = {
      requests: { least, most: Math.max(asked.most, least) },
      denied: { least: refused.least, most: Math.min(refused.most, Math.max(asked.most, least)) },
    }
    return {
      key,
      ...(dimension !== undefined && { dimension }),
      ...traffic,
      shareDenied: shareOf(traffic),
      demand: demandOf(
        traffic,
        rates.filter((rate) => rate.dimension === dimension),
        spanMs,
      ),
    }
  }).toSorted((a, b) => b.denied.most - a.denied.most || b.requests.most - a.requests.most)
}

/** Returns an ID that distinguishes the same key in different dimensions. */
export function idOf({ dimension = '', key }: Pick<KeyTraffic, 'dimension' | 'key'>): string {
  return `${dimension}=${key}`
}

function rangeOf(counted: TopKey | undefined, unlisted: number): Range {
  if (counted === undefined) return { least: 0, most: unlisted }
  return { least: counted.count - counted.error, most: counted.count }
}

type Counts = Pick<KeyTraffic, 'requests' | 'denied'>

/** The share of requests that were denied, for one or several keys. */
export function shareOf({ requests, denied }: Counts): Range {
  const of = (part: number, whole: number) => (whole === 0 ? 0 : Math.min(1, part / whole))
  return { least: of(denied.least, requests.most), most: of(denied.most, requests.least) }
}

/** The units that a limit admits: `units` per window, plus `burst`. */
interface Rate {
  readonly dimension: string | undefined
  readonly units: number
  readonly windowMs: number
  readonly burst: number
}

const UNITS: Readonly<Record<string, string>> = { hour: '1h', day: '1d', week: '7d', month: '30d' }

/** Undefined for limits that don't count requests over time. */
function rateOf({ kind, dimension, ...limit }: DeclaredLimit): Rate | undefined {
  const isBucket = kind === 'tokenBucket'
  if (!isBucket && !/^(slidingWindow|fixedWindow|calendarWindow|slidingCounter)$/.test(kind)) return undefined
  const span = isBucket ? limit.interval : (limit.window ?? UNITS[String(limit.unit)])
  const windowMs = typeof span === 'number' ? span : parseDuration(String(span))
  if (windowMs === undefined || windowMs === 0) return undefined
  const units = Number(isBucket ? limit.refill : limit.limit)
  return { dimension, units, windowMs, burst: isBucket ? Number(limit.capacity) : 0 }
}

/** The highest of the demands on the limits. */
function demandOf(counts: Counts, rates: readonly Rate[], spanMs: number): Range | undefined {
  const ranges = rates.map((rate) => demandOn(counts, rate, spanMs)).filter((range) => range !== undefined)
  if (ranges.length === 0) return undefined
  return {
    least: Math.max(...ranges.map(({ least }) => least)),
    most: Math.max(...ranges.map(({ most }) => most)),
  }
}

function demandOn({ requests, denied }: Counts, rate: Rate, spanMs: number): Range | undefined {
  const { units, windowMs, burst } = rate
  const isLong = burst === 0 && windowMs > spanMs
  const room = isLong ? units : burst + (units * spanMs) / windowMs
  const admitted = {
    least: Math.max(0, requests.least - denied.most),
    most: requests.most - denied.least,
  }
  // If the limit can't have admitted that many requests, the key has other limits, from a plan or an override.
  if (denied.most === 0 && admitted.least > room + units) return undefined
  const capacity = Math.max(room, admitted.most)
  // A denial shows that a long window was full, even if the requests that filled it are older than the counts.
  const least = (isLong && denied.least > 0 ? capacity + denied.least : requests.least) / capacity
  const most = isLong
    ? (requests.most * windowMs) / spanMs / Math.max(room, admitted.least)
    : requests.most / (denied.most === 0 ? room : Math.max(1, admitted.least))
  return { least, most: Math.max(least, most) }
}
