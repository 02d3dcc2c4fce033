import { anyOf, callers } from '../callers.ts'
import { serve } from '../workers.ts'
import { Connection, postOf, requestOf } from './connection.ts'

/** The load of one turn. */
export interface LoadRequest {
  readonly port: number
  readonly connections: number
  readonly ms: number
  /** A number: each request has one of this many users. A string: each connection has its own user with this prefix. */
  readonly users: number | string
  /** Calls to the service. Default: a GET with the user in a header. */
  readonly posts?: Posts
  /**
   * Requests per second over all connections. Default: each connection sends a request as soon as the last response has arrived.
   */
  readonly perSecond?: number
  /** The time on the wall clock when the load begins. Default: as soon as the connections are open. */
  readonly beginsAtMs?: number
}

/** Calls to the service. */
export interface Posts {
  readonly path: string
  readonly limiter: string
  /** Decisions per call. Default: one, sent as a single request instead of a list. */
  readonly perCall?: number
}

export interface LoadResult {
  readonly requests: number
  readonly seconds: number
  readonly meanMs: number
  readonly p99Ms: number
  /** Status -> number of responses. */
  readonly statuses: Readonly<Record<number, number>>
}

serve(load)

/** Port -> open connections, kept between turns. */
const kept = new Map<number, Connection[]>()

/** Opens connections one by one. Opening thousands at once would overflow the server's accept queue. */
async function openConnections(port: number, count: number): Promise<Connection[]> {
  const open = kept.get(port) ?? []
  while (open.length < count) open.push(await Connection.open(port))
  kept.set(port, open)
  return open
}

async function load({
  port,
  connections,
  ms,
  users,
  posts,
  perSecond,
  beginsAtMs = 0,
}: LoadRequest): Promise<LoadResult> {
  const open = await openConnections(port, connections)
  const requestFor =
    typeof users === 'number' ? requestOfAny(users, posts) : requestOfOwn(users, connections, posts)
  const everyMs = perSecond === undefined ? 0 : (1000 * connections) / perSecond
  const statuses: Record<number, number> = {}
  const times: number[] = []
  await new Promise((resolve) => setTimeout(resolve, Math.max(0, beginsAtMs - Date.now())))
  const start = performance.now()

  const run = (connection: Connection, index: number) =>
    new Promise<void>((resolve) => {
      // At a fixed rate, the start times are spread evenly.
      let dueMs = start + (everyMs * index) / connections
      const ask = () => {
        dueMs += everyMs
        connection.send(requestFor(index), onAnswer)
      }
      const next = () => {
        const now = performance.now()
        if (Math.max(now, dueMs) >= start + ms) resolve()
        else if (now >= dueMs) ask()
        else setTimeout(ask, dueMs - now)
      }
      const onAnswer = (status: number, took: number) => {
        times.push(took)
        statuses[status] = (statuses[status] ?? 0) + 1
        next()
      }
      next()
    })
  await Promise.all(open.map(run))
  const seconds = (performance.now() - start) / 1000
  const sorted = Float64Array.from(times).sort()
  const meanMs = sorted.reduce((total, took) => total + took, 0) / sorted.length
  return {
    requests: sorted.length,
    seconds,
    meanMs,
    p99Ms: sorted[Math.floor(0.99 * sorted.length)]!,
    statuses,
  }
}

function requestOfAny(users: number, posts: Posts | undefined): () => Buffer {
  const requests = requestsOf(callers(users), posts)
  const pick = anyOf(users)
  return () => requests[pick()]!
}

function requestsOf(names: readonly string[], posts: Posts | undefined): Buffer[] {
  return names.map((user, i) => (posts === undefined ? requestOf(user) : callOf(posts, names, i)))
}

/** Returns a call with `perCall` consecutive keys, starting at `first`. */
function callOf({ path, limiter, perCall }: Posts, names: readonly string[], first: number): Buffer {
  const requests = Array.from({ length: perCall ?? 1 }, (_, i) => ({
    limiter,
    key: names[(first + i) % names.length]!,
  }))
  return postOf(path, perCall === undefined ? requests[0] : { requests })
}

function requestOfOwn(
  prefix: string,
  connections: number,
  posts: Posts | undefined,
): (index: number) => Buffer {
  const names = Array.from({ length: connections }, (_, index) => `${prefix}:${index}`)
  const requests = requestsOf(names, posts)
  return (index) => requests[index]!
}
