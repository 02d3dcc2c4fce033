import { anyOf, callers } from '../callers.ts'
import { serve } from '../workers.ts'
import { Connection, postOf, requestOf } from './connection.ts'

/** A turn of load. */
export interface Asked {
  readonly port: number
  readonly connections: number
  readonly ms: number
  /** Who asks: on each connection any of so many users, or a user of its own, whose name begins so. */
  readonly users: number | string
  /** What is asked of the service; left out, a GET with the user in a header. */
  readonly posts?: Posts
  /** Requests per second, over all connections; left out, each connection asks anew as soon as it is answered. */
  readonly perSecond?: number
  /** By the wall clock; left out, as soon as the connections stand. */
  readonly beginsAtMs?: number
}

/** Calls of the service, each of which asks for so many users, of all there are. */
export interface Posts {
  readonly path: string
  readonly limiter: string
  /** Left out, each call asks for one, in the form for one. */
  readonly perCall?: number
}

export interface Answered {
  readonly requests: number
  readonly seconds: number
  readonly meanMs: number
  readonly p99Ms: number
  /** By status: how often it was answered. */
  readonly statuses: Readonly<Record<number, number>>
}

serve(load)

/** To each port, from turn to turn. */
const kept = new Map<number, Connection[]>()

/** One after the other: thousands at once would be more than a server lets wait to be accepted. */
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
}: Asked): Promise<Answered> {
  const open = await openConnections(port, connections)
  const requestFor = typeof users === 'number' ? requestOfAny(users, posts) : requestOfOwn(users, connections)
  const everyMs = perSecond === undefined ? 0 : (1000 * connections) / perSecond
  const statuses: Record<number, number> = {}
  const times: number[] = []
  await new Promise((resolve) => setTimeout(resolve, Math.max(0, beginsAtMs - Date.now())))
  const start = performance.now()

  const lane = (connection: Connection, index: number) =>
    new Promise<void>((resolve) => {
      // Those that keep a pace do not all begin at once.
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
  await Promise.all(open.map(lane))
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
  const names = callers(users)
  const requests = names.map((user, i) => (posts === undefined ? requestOf(user) : callOf(posts, names, i)))
  const pick = anyOf(users)
  return () => requests[pick()]!
}

/** Many are asked for in a row, beginning with this one. */
function callOf({ path, limiter, perCall }: Posts, names: readonly string[], first: number): Buffer {
  const requests = Array.from({ length: perCall ?? 1 }, (_, i) => ({
    limiter,
    key: names[(first + i) % names.length]!,
  }))
  return postOf(path, perCall === undefined ? requests[0] : { requests })
}

function requestOfOwn(prefix: string, connections: number): (index: number) => Buffer {
  const requests = Array.from({ length: connections }, (_, index) => requestOf(`${prefix}:${index}`))
  return (index) => requests[index]!
}
