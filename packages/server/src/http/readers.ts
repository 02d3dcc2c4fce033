// Authorizes readers, and sends them event streams.

import type { IncomingMessage } from 'node:http'
import type { Readable } from 'node:stream'
import type { FastifyReply } from 'fastify'
import type { Caller } from '../service/gatekeeper.ts'
import type { Context } from './context.ts'

/**
 * Checks that a caller may see a limiter. Also accepts Envoy domains, which aren't in the configuration.
 *
 * @throws {ServiceError} `unknown_limiter`
 */
export function mustSee({ service, admin }: Context, caller: Caller, name: string): void {
  caller.mustReach(name)
  if (!admin.seen().includes(name)) service.get(name)
}

/** Lists the limiters and Envoy domains that the caller may see. */
export function namesFor({ service, admin }: Context, caller: Caller): string[] {
  const names = new Set([...service.active().map(({ declared }) => declared.name), ...admin.seen()])
  return Array.from(names).filter((name) => caller.may(name))
}

/** Authorizes the reader of a stream again. The token may have been revoked or restricted in the meantime. */
export function readerNow({ gatekeeper }: Context, { headers }: IncomingMessage): Caller {
  const reader = gatekeeper.admit(headers.authorization)
  reader.must('read')
  return reader
}

/** Sends an event stream until the client disconnects. */
export function sendEvents(raw: IncomingMessage, reply: FastifyReply, stream: Readable): FastifyReply {
  raw.once('close', () => stream.destroy())
  // Keeps proxies from caching or buffering the stream.
  reply.headers({ 'cache-control': 'no-store', 'x-accel-buffering': 'no' })
  return reply.type('text/event-stream').send(stream)
}
