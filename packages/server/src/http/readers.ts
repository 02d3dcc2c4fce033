// What a reader may see, and streams of it.

import type { IncomingMessage } from 'node:http'
import type { Readable } from 'node:stream'
import type { FastifyReply } from 'fastify'
import type { Caller } from '../service/gatekeeper.ts'
import type { Context } from './context.ts'

/**
 * Domains of Envoy are no limiters of the configuration, and yet there is something to be seen of them.
 *
 * @throws {ServiceError} `unknown_limiter`
 */
export function mustSee({ service, admin }: Context, caller: Caller, name: string): void {
  caller.mustReach(name)
  if (!admin.seen().includes(name)) service.get(name)
}

/** Of what there is something to be seen, as far as the caller may. */
export function namesFor({ service, admin }: Context, caller: Caller): string[] {
  const names = new Set([...service.active().map(({ declared }) => declared.name), ...admin.seen()])
  return Array.from(names).filter((name) => caller.may(name))
}

/** Who reads a stream. A token may be taken back, or told to be for less, while he reads. */
export function readerNow({ gatekeeper }: Context, { headers }: IncomingMessage): Caller {
  const reader = gatekeeper.admit(headers.authorization)
  reader.must('read')
  return reader
}

/** Answers with events, for as long as anybody reads them. */
export function sendEvents(raw: IncomingMessage, reply: FastifyReply, stream: Readable): FastifyReply {
  raw.once('close', () => stream.destroy())
  // Nothing between should keep it, or wait for its end.
  reply.headers({ 'cache-control': 'no-store', 'x-accel-buffering': 'no' })
  // A stream is what is sent as it comes; the schema says what it reads like.
  return reply.type('text/event-stream').send(stream)
}
