import { createServer } from 'node:net'

/**
 * Below the ports that Linux and macOS give to outgoing connections. A client that keeps trying to reach a server that
 * is down could otherwise be given the server's own port, and keep it from coming back.
 */
const FIRST = 11_000
const COUNT = 10_000
/** Tests that run at the same time have ranges of their own: a port that is free may be taken before it is used. */
const RANGES = 4
const RANGE = Number(process.env.VITEST_POOL_ID ?? 0) % RANGES
/** Where Redis Cluster puts its bus. */
const BUS = 10_000

const given = new Set<number>()

/** A port that nobody listens on at the moment, and that this process has not been given before. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = FIRST + Math.floor(((RANGE + Math.random()) * COUNT) / RANGES)
    if (given.has(port)) continue
    given.add(port)
    if (await isFree(port)) return port
  }
}

/** One whose cluster bus is free as well. */
export async function freeClusterPort(): Promise<number> {
  for (;;) {
    const port = await freePort()
    if (await isFree(port + BUS)) return port
  }
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer()
    server.once('error', () => resolve(false))
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)))
  })
}
