// Turns a decision into a status, headers and a body.

import type { FastifyReply } from 'fastify'
import type { Decision, LimitDecision } from 'slidegate'
import { draft11Headers, retryAfterHeaders } from 'slidegate/http'

/** Spelled as in Fastify, so that Fastify doesn't add a charset. */
const JSON_TYPE = 'application/json; charset=utf-8'

/** Sets the rate limit headers. */
export function announceState(reply: FastifyReply, decision: Decision): void {
  for (const { name, value } of draft11Headers(decision)) reply.header(name, value)
  for (const { name, value } of retryAfterHeaders(decision)) reply.header(name, value)
}

/** Sets status and headers for a decision. */
function announce(reply: FastifyReply, decision: Decision): void {
  announceState(reply, decision)
  if (!decision.allowed) reply.code(deniedStatus([decision]))
}

/** The status for denials: 503 if no limit was checked, because then the caller isn't at fault. */
export function deniedStatus(decisions: readonly Decision[]): 429 | 503 {
  const denied = decisions.filter(({ allowed }) => !allowed)
  return denied.every(({ source }) => source === 'failClosed') ? 503 : 429
}

/**
 * Writes a decision as JSON, with null for infinity.
 *
 * Twice as fast as `JSON.stringify`. Names of limiters and limits need no escaping.
 */
export function decisionText(limiter: string, decision: Decision): string {
  const { allowed, cost, remaining, retryAfterMs, resetAfterMs, deniedBy, limits, source, atMs, blockedMs } =
    decision
  let limitsText = ''
  for (let i = 0; i < limits.length; i++) limitsText += `${i === 0 ? '' : ','}${limitText(limits[i]!, i)}`
  const denied = deniedBy.length === 0 ? '' : `"${deniedBy.join('","')}"`
  const blocked = blockedMs === undefined ? '' : `,"blockedMs":${numberText(blockedMs)}`
  return (
    `{"limiter":"${limiter}","allowed":${allowed},"cost":${cost},"remaining":${numberText(remaining)}` +
    `,"retryAfterMs":${numberText(retryAfterMs)},"resetAfterMs":${numberText(resetAfterMs)},"deniedBy":[${denied}]` +
    `,"limits":[${limitsText}],"source":"${source}","atMs":${atMs}${blocked}}`
  )
}

function limitText(limit: LimitDecision, place: number): string {
  const { allowed, remaining, retryAfterMs, resetAfterMs } = limit
  return (
    `${declarationText(limit, place)},"allowed":${allowed},"remaining":${numberText(remaining)}` +
    `,"retryAfterMs":${numberText(retryAfterMs)},"resetAfterMs":${numberText(resetAfterMs)}}`
  )
}

/** The JSON of the last limit at each position. Consecutive decisions usually have the same limits. */
const declarations: { readonly of: LimitDecision; readonly text: string }[] = []

function declarationText(limit: LimitDecision, place: number): string {
  const last = declarations[place]
  if (last !== undefined && isSameLimit(last.of, limit)) return last.text
  const { name, windowMs, precisionMs, shadow } = limit
  // `join()` returns one flat string. Concatenation returns a tree of strings, which is slower to use.
  const text = [
    ...['{"name":"', name, '","limit":', limit.limit, ',"windowMs":', windowMs],
    ...[',"precisionMs":', precisionMs, ',"shadow":', shadow],
  ].join('')
  declarations[place] = { of: limit, text }
  return text
}

function isSameLimit(one: LimitDecision, other: LimitDecision): boolean {
  if (one.name !== other.name || one.limit !== other.limit || one.windowMs !== other.windowMs) return false
  return one.precisionMs === other.precisionMs && one.shadow === other.shadow
}

function numberText(value: number): string {
  return value === Number.POSITIVE_INFINITY ? 'null' : `${value}`
}

/** Sets the content type, and returns the body for a decision. */
export function decidedBody(reply: FastifyReply, limiter: string, decision: Decision, more?: object): string {
  reply.type(JSON_TYPE)
  return more === undefined
    ? decisionText(limiter, decision)
    : JSON.stringify({ limiter, ...decision, ...more })
}

/** Sets the content type, and returns the body for many decisions. */
export function decisionsBody(
  reply: FastifyReply,
  decisions: readonly { readonly limiter: string; readonly decision: Decision }[],
): string {
  reply.type(JSON_TYPE)
  return `{"decisions":[${decisions.map(({ limiter, decision }) => decisionText(limiter, decision)).join()}]}`
}

/** Sets status and headers for a decision, and returns its body. */
export function decided(reply: FastifyReply, limiter: string, decision: Decision, more?: object): string {
  announce(reply, decision)
  return decidedBody(reply, limiter, decision, more)
}
