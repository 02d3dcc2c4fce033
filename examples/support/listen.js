// @ts-check
import { once } from 'node:events'
import { createServer } from 'node:http'

/**
 * Listens on loopback, on PORT or a free port.
 *
 * @param {import('node:http').RequestListener} handle
 */
export async function listen(handle, port = Number(process.env.PORT ?? 0)) {
  const server = createServer(handle).listen(port, '127.0.0.1')
  await once(server, 'listening')
  const address = /** @type {import('node:net').AddressInfo} */ (server.address())
  return { server, url: `http://127.0.0.1:${address.port}` }
}
