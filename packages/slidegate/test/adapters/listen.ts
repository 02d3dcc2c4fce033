import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Server } from './suite.ts'

/** Starts a server on a free port of loopback. */
export async function listen(listener: RequestListener): Promise<Pick<Server, 'url' | 'close'>> {
  const server = createServer(listener)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}`,
    async close() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
