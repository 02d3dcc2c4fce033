import { createServer } from 'node:net'

/**
 * The first port. The range is below the ports that Linux and macOS use for outgoing connections.
 * Otherwise, a client that keeps reconnecting to a stopped server could be assigned the server's own port, and keep
 * the server from restarting.
 */
const FIRST = 11_000
const COUNT = 10_000
/** Parallel tests use separate ranges: a free port may be taken before it is used. */
const RANGES = 4
const RANGE = Number(process.env.VITEST_POOL_ID ?? 0) % RANGES
/** The offset of the cluster bus port in Redis Cluster. */
const BUS = 10_000

const returned = new Set<number>()

/** Returns a port that is free now and that this process hasn't used before. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = FIRST + Math.floor(((RANGE + Math.random()) * COUNT) / RANGES)
    if (returned.has(port)) continue
    returned.add(port)
    if (await isFree(port)) return port
  }
}

/** Returns a free port whose cluster bus port is free as well. */
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
