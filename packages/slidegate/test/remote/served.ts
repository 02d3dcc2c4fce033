import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { SlidegateError } from '../../src/errors.ts'
import {
  type ServedStore,
  type ServiceStoreOptions,
  serveStore,
  serviceStore,
} from '../../src/stores/remote/index.ts'
import type { Store } from '../../src/stores/store.ts'

/** A store behind HTTP, like that of a service, on a free loopback port. */
export interface Served extends AsyncDisposable {
  readonly url: string
  readonly server: Server
  /** The bodies received so far. */
  readonly bodies: readonly string[]
  /** Creates a store that sends its requests here. */
  connect(options?: ServiceStoreOptions): Store
  /** Replaces the store. */
  serve(store: Store): void
}

export async function served(store: Store): Promise<Served> {
  const patient = { timeoutMs: 30_000 }
  let serve: ServedStore = serveStore(store, patient)
  const bodies: string[] = []
  const server = createServer(async (request, response) => {
    const body = await text(request)
    bodies.push(body)
    try {
      const answer = await serve(JSON.parse(body), () => {})
      response.setHeader('content-type', 'application/json').end(JSON.stringify(answer))
    } catch (error) {
      const isWrong = error instanceof SlidegateError
      response.statusCode = isWrong ? 400 : 500
      response.end(JSON.stringify({ code: isWrong ? error.code : 'internal', detail: String(error) }))
    }
  })
  // On a busy machine, the server would otherwise close an idle connection just as the client uses it again.
  server.keepAliveTimeout = 60_000
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return {
    url,
    server,
    bodies,
    connect: (options) => serviceStore(url, options),
    serve: (next) => {
      serve = serveStore(next, patient)
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
