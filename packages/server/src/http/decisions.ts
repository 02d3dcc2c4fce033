// A decision -> status, headers, body.

import type { FastifyReply } from 'fastify'
import type { Decision, LimitDecision } from 'slidegate'
import { draft11Headers, retryAfterHeaders } from 'slidegate/http'

/** The type of what is written here, spelt as the framework does: it then adds nothing to it. */
const JSON_TYPE = 'application/json; charset=utf-8'

/** Sets the rate limit headers. */
export function announceState(reply: FastifyReply, decision: Decision): void {
  for (const { name, value } of draft11Headers(decision)) reply.header(name, value)
  for (const { name, value } of retryAfterHeaders(decision)) reply.header(name, value)
}

/** Sets status and headers for a decision. */
function announce(reply: FastifyReply, decision: Decision): void {
  announceState(reply, decision)
  if (!decision.allowed) reply.code(429)
}

/**
 * A decision as JSON; infinity, which that does not have, is null. By hand, in half the time of `JSON.stringify`, since this
 * is done for each request: names of limiters and limits have nothing to escape.
 */
export function decisionText(limiter: string, decision: Decision): string {
  const { allowed, cost, remaining, retryAfterMs, resetAfterMs, deniedBy, limits, source, atMs, blockedMs } =
    decision
  let limitsText = ''
  for (const limit of limits) limitsText += limitsText === '' ? limitText(limit) : `,${limitText(limit)}`
  const denied = deniedBy.length === 0 ? '' : `"${deniedBy.join('","')}"`
  const blocked = blockedMs === undefined ? '' : `,"blockedMs":${numberText(blockedMs)}`
  return (
    `{"limiter":"${limiter}","allowed":${allowed},"cost":${cost},"remaining":${numberText(remaining)}` +
    `,"retryAfterMs":${numberText(retryAfterMs)},"resetAfterMs":${numberText(resetAfterMs)},"deniedBy":[${denied}]` +
    `,"limits":[${limitsText}],"source":"${source}","atMs":${atMs}${blocked}}`
  )
}

function limitText(limit: LimitDecision): string {
  const { name, windowMs, precisionMs, shadow, allowed, remaining, retryAfterMs, resetAfterMs } = limit
  return (
    `{"name":"${name}","limit":${limit.limit},"windowMs":${windowMs},"precisionMs":${precisionMs}` +
    `,"shadow":${shadow},"allowed":${allowed},"remaining":${numberText(remaining)}` +
    `,"retryAfterMs":${numberText(retryAfterMs)},"resetAfterMs":${numberText(resetAfterMs)}}`
  )
}

function numberText(value: number): string {
  return value === Number.POSITIVE_INFINITY ? 'null' : `${value}`
}

/** The body: what a handler answers. */
export function decidedBody(reply: FastifyReply, limiter: string, decision: Decision, more?: object): string {
  reply.type(JSON_TYPE)
  return more === undefined
    ? decisionText(limiter, decision)
    : JSON.stringify({ limiter, ...decision, ...more })
}

/** The body for many. */
export function decisionsBody(
  reply: FastifyReply,
  asked: readonly { readonly limiter: string; readonly decision: Decision }[],
): string {
  reply.type(JSON_TYPE)
  return `{"decisions":[${asked.map(({ limiter, decision }) => decisionText(limiter, decision)).join()}]}`
}

/** Status, headers and body for a decision. */
export function decided(reply: FastifyReply, limiter: string, decision: Decision, more?: object): string {
  announce(reply, decision)
  return decidedBody(reply, limiter, decision, more)
}
