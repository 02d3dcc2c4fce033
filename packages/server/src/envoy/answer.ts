// Builds responses: statuses, header fields and metadata.

import type { Decision, LimitDecision } from 'slidegate'
import {
  draft6Headers,
  draft7Headers,
  draft11Headers,
  type Header,
  legacyHeaders,
  retryAfterHeaders,
} from 'slidegate/http'
import type { EnvoyConfig } from '../config/schema.ts'
import { isObject } from '../is-object.ts'
import { areQuotasOver, type Verdicts } from './decide.ts'
import { MAX_UINT32 } from './domain.ts'
import { type DescriptorStatus, OK, OVER_LIMIT, type RateLimitResponse, structOf } from './protocol.ts'
import type { Question } from './question.ts'

/** The status of a descriptor that matches no rule, or only an unlimited one. */
export type Uncounted = 'none' | 'unlimited'

const UNLIMITED: DescriptorStatus = { code: OK, limit_remaining: MAX_UINT32 }
const NO_LIMIT: DescriptorStatus = { code: OK }

const HEADER_WRITERS = {
  'draft-11': draft11Headers,
  'draft-7': draft7Headers,
  'draft-6': draft6Headers,
  legacy: legacyHeaders,
} as const

/** Returns a function that formats header fields. The function returns no fields if headers are turned off. */
export function headerWriterOf(
  headers: EnvoyConfig['headers'] = true,
): (decision: Decision) => readonly Header[] {
  if (headers === false) return () => []
  const writer = HEADER_WRITERS[headers === true ? 'draft-11' : headers]
  return (decision) => [...writer(decision), ...retryAfterHeaders(decision)]
}

/** Returns the decision on a whole request, in the library's format. */
export function decisionOf(
  questions: readonly Question[],
  { isDenied, decision }: Verdicts,
): Decision | undefined {
  if (questions.length === 0) return undefined
  const limits: LimitDecision[] = []
  const deniedBy: string[] = []
  let remaining = Number.POSITIVE_INFINITY
  let retryAfterMs = 0
  let resetAfterMs = 0
  // If all quotas deny the request, a retry is allowed as soon as one of them has enough units.
  let quotaMs = isDenied && areQuotasOver(questions) ? Number.POSITIVE_INFINITY : 0
  for (const question of questions) {
    const verdict = verdictOf(question)
    limits.push(verdict)
    if (question.rule.isQuota && !question.rule.isShadow) quotaMs = Math.min(quotaMs, verdict.retryAfterMs)
    if (verdict.shadow) continue
    remaining = Math.min(remaining, verdict.remaining)
    resetAfterMs = Math.max(resetAfterMs, verdict.resetAfterMs)
    if (!isDenied || verdict.allowed) continue
    deniedBy.push(verdict.name)
    retryAfterMs = Math.max(retryAfterMs, verdict.retryAfterMs)
  }
  return {
    allowed: !isDenied,
    cost: questions[0]!.cost,
    remaining,
    retryAfterMs: Math.max(retryAfterMs, quotaMs),
    resetAfterMs,
    deniedBy,
    limits,
    source: decision?.source ?? 'store',
    atMs: decision?.atMs ?? Date.now(),
  }
}

function verdictOf({ rule, verdict, isOver }: Question): LimitDecision {
  return {
    name: rule.policy,
    limit: rule.requestsPerUnit,
    windowMs: rule.windowMs,
    precisionMs: rule.precisionMs,
    shadow: rule.isShadow || rule.isQuota,
    allowed: !isOver,
    remaining: verdict?.remaining ?? 0,
    retryAfterMs: verdict?.retryAfterMs ?? 0,
    // Headers can't express "never".
    resetAfterMs: finite(verdict?.resetAfterMs ?? 0, rule.windowMs),
  }
}

/** @param described the rule or the status of each descriptor, in order */
export function responseOf(
  described: readonly (Question | Uncounted)[],
  isDenied: boolean,
  headers: readonly Header[],
): RateLimitResponse {
  const metadata = metadataOf(described)
  return {
    overall_code: isDenied ? OVER_LIMIT : OK,
    statuses: described.map(statusOf),
    ...(headers.length > 0 && {
      response_headers_to_add: headers.map(({ name, value }) => ({ key: name, value })),
    }),
    ...(metadata !== undefined && { dynamic_metadata: structOf(metadata) }),
  }
}

function statusOf(question: Question | Uncounted): DescriptorStatus {
  if (question === 'unlimited') return UNLIMITED
  if (question === 'none') return NO_LIMIT
  const { rule, verdict, isOver } = question
  const { remaining = 0, retryAfterMs = 0, resetAfterMs = 0 } = verdict ?? {}
  const untilMs = finite(isOver ? retryAfterMs : resetAfterMs, rule.windowMs)
  return {
    code: isOver && !rule.isShadow ? OVER_LIMIT : OK,
    current_limit: rule.currentLimit,
    limit_remaining: isOver ? 0 : Math.min(remaining, MAX_UINT32),
    // Envoy reads whole seconds, and clients wait for that long.
    duration_until_reset: { seconds: Math.ceil(untilMs / 1000) },
  }
}

function finite(ms: number, windowMs: number): number {
  return ms === Number.POSITIVE_INFINITY ? windowMs : ms
}

/** Metadata for later Envoy filters: exceeded shadow limits, and the metadata of the applied rules. */
function metadataOf(described: readonly (Question | Uncounted)[]): Record<string, unknown> | undefined {
  let shadow: unknown[] | undefined
  let metadata: Record<string, unknown> | undefined
  described.forEach((question, descriptor) => {
    if (typeof question === 'string') return
    const { rule, isOver } = question
    if (isOver && rule.isShadow) {
      shadow ??= []
      shadow.push({ descriptor, limit: rule.name || rule.path, code: 'OVER_LIMIT' })
    }
    if (!isOver && rule.metadata !== undefined) metadata = merged(metadata ?? {}, rule.metadata)
  })
  if (shadow === undefined && metadata === undefined) return undefined
  return { ...(shadow && { shadow }), ...(metadata && { metadata }) }
}

/** Merges nested objects. Values in `first` take precedence. */
function merged(
  first: Readonly<Record<string, unknown>>,
  second: Readonly<Record<string, unknown>>,
): Record<string, unknown> {
  const all = new Map<string, unknown>(Object.entries(first))
  for (const [name, value] of Object.entries(second)) {
    const before = all.get(name)
    if (!all.has(name)) all.set(name, value)
    else if (isObject(before) && isObject(value)) all.set(name, merged(before, value))
  }
  // Doesn't assign the fields one by one, because a name may be __proto__.
  return Object.fromEntries(all)
}
