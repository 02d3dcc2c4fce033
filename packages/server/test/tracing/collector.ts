import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

interface ReceivedSpan {
  readonly name: string
  readonly traceId: string
  readonly parentSpanId: string | undefined
  readonly attributes: Readonly<Record<string, unknown>>
}

/** A collector that receives spans as OTLP over HTTP. Stop it with `await using`. */
export interface Collector extends AsyncDisposable {
  readonly url: string
  readonly spans: readonly ReceivedSpan[]
  /** Resource attributes of the senders. */
  readonly resources: readonly Readonly<Record<string, unknown>>[]
  /** Everything received, as text. */
  readonly text: string
  /** Accepts requests without responding, until released. */
  hang(): void
  answer(): void
}

type Attributes = readonly { readonly key: string; readonly value: Readonly<Record<string, unknown>> }[]

interface Body {
  readonly resourceSpans: readonly {
    readonly resource: { readonly attributes: Attributes }
    readonly scopeSpans: readonly {
      readonly spans: readonly (Omit<ReceivedSpan, 'attributes'> & { readonly attributes: Attributes })[]
    }[]
  }[]
}

export async function startCollector(): Promise<Collector> {
  const spans: ReceivedSpan[] = []
  const resources: Record<string, unknown>[] = []
  const waiting: ServerResponse[] = []
  let isHanging = false
  let all = ''
  const server = createServer(async (request, response) => {
    let text = ''
    try {
      for await (const chunk of request.setEncoding('utf8')) text += chunk
    } catch {
      // The sender has timed out.
      return
    }
    if (request.url !== '/v1/traces' || request.headers['content-type'] !== 'application/json') {
      response.writeHead(404).end()
      return
    }
    all += text
    for (const { resource, scopeSpans } of (JSON.parse(text) as Body).resourceSpans) {
      resources.push(valuesOf(resource.attributes))
      for (const each of scopeSpans.flatMap((scope) => scope.spans)) {
        spans.push({ ...each, attributes: valuesOf(each.attributes) })
      }
    }
    if (isHanging) waiting.push(response)
    else finish(response)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const answer = () => {
    isHanging = false
    for (const response of waiting.splice(0)) finish(response)
  }
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    spans,
    resources,
    get text() {
      return all
    },
    hang: () => {
      isHanging = true
    },
    answer,
    [Symbol.asyncDispose]: async () => {
      answer()
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

function finish(response: ServerResponse): void {
  response.writeHead(200, { 'content-type': 'application/json' }).end('{}')
}

function valuesOf(told: Attributes): Record<string, unknown> {
  return Object.fromEntries(told.map(({ key, value }) => [key, Object.values(value)[0]]))
}
