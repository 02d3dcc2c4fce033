// @ts-check
import { once } from 'node:events'
import { createServer } from 'node:net'

/** Returns a free port on loopback. */
export async function freePort() {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = /** @type {import('node:net').AddressInfo} */ (server.address())
  server.close()
  await once(server, 'close')
  return port
}
