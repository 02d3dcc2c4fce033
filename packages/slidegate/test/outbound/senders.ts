import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Readable } from 'node:stream'
import { Agent, request } from 'undici'
import { onTestFinished } from 'vitest'
import type { Limiter } from '../../src/index.ts'
import { limitedFetch, limitedInterceptor, type OutboundOptions } from '../../src/outbound/index.ts'

interface Sent {
  readonly method?: string
  readonly body?: string
  /** Whether to send the body as a stream, which can be read only once. */
  readonly isStreamed?: boolean
  readonly signal?: AbortSignal
}

export type Send = (url: string, sent?: Sent) => Promise<{ readonly status: number; readonly text: string }>

/** The ways to send a request within a budget, which must behave alike. */
export const SENDERS: Readonly<Record<string, (limiter: Limiter, options?: OutboundOptions) => Send>> = {
  limitedFetch(limiter, options) {
    const limited = limitedFetch(fetch, limiter, options)
    return async (url, { method, body, isStreamed, signal } = {}) => {
      const stream = isStreamed ? new Blob([body!]).stream() : undefined
      const response = await limited(url, {
        ...(method && { method }),
        ...(body && { body: stream ?? body }),
        ...(stream && { duplex: 'half' }),
        ...(signal && { signal }),
      })
      return { status: response.status, text: await response.text() }
    }
  },

  limitedInterceptor(limiter, options) {
    const agent = new Agent()
    onTestFinished(() => agent.destroy())
    const dispatcher = agent.compose(limitedInterceptor(limiter, options))
    return async (url, { method = 'GET', body, isStreamed, signal } = {}) => {
      const response = await request(url, {
        method: method as 'GET',
        dispatcher,
        ...(body && { body: isStreamed ? Readable.from([body]) : body }),
        ...(signal && { signal }),
      })
      return { status: response.statusCode, text: await response.body.text() }
    }
  },
}

/** A request that the upstream received. */
export interface Asked {
  readonly url: string
  readonly body: string
}

type Answer = (request: IncomingMessage, response: ServerResponse) => void | Promise<void>

/** Starts an upstream that responds with this list in order. It then repeats the last response. */
export async function upstreamOf(...answers: readonly Answer[]): Promise<{ url: string; asked: Asked[] }> {
  const asked: Asked[] = []
  const listener: RequestListener = async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk)
    const count = asked.push({
      url: `${request.method} ${request.url}`,
      body: Buffer.concat(chunks).toString(),
    })
    await answers[Math.min(count, answers.length) - 1]!(request, response)
  }
  const server = createServer(
    (request, response) => void Promise.resolve(listener(request, response)).catch(() => {}),
  )
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(async () => {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  })
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/path`, asked }
}

/** Responds with this status and these headers. */
export function answer(status: number, fields: Readonly<Record<string, string>> = {}, body = 'done'): Answer {
  return (_, response) => {
    response.writeHead(status, fields)
    response.end(body)
  }
}

export const ok: Answer = answer(200)

/** Closes the connection without a response. */
export const hangUp: Answer = (request) => {
  request.socket.destroy()
}
