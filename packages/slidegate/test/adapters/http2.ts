import { connect, createServer, type Http2ServerRequest, type Http2ServerResponse } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { onTestFinished } from 'vitest'

/**
 * Starts an HTTP/2 server for the running test and connects to it. A request resolves to its status, or to the error
 * code if its stream closes without a response.
 */
export async function converseByHttp2(
  listener: (req: Http2ServerRequest, res: Http2ServerResponse) => unknown,
): Promise<{ ask: () => Promise<number | undefined>; isOpen: () => boolean }> {
  const server = createServer((req, res) => void listener(req, res))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const session = connect(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
  onTestFinished(async () => {
    session.destroy()
    await new Promise((resolve) => server.close(resolve))
  })
  const ask = () =>
    new Promise<number | undefined>((resolve) => {
      const request = session.request({ ':path': '/' })
      request.on('response', (headers) => resolve(headers[':status']))
      request.on('error', () => {})
      request.on('close', () => resolve(request.rstCode))
      request.resume()
    })
  return { ask, isOpen: () => !session.destroyed }
}

/** An error code from RFC 9113, section 7. */
export const CANCEL = 8
