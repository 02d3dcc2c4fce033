/** The measurements of one period of load. */
export interface Load {
  readonly requests: number
  readonly seconds: number
  /** CPU time of this process, all threads. */
  readonly clientCpuSeconds: number
}

/** When a load ends: after some time, or after a number of requests. */
export type Extent = { readonly ms: number } | { readonly requests: number }

/** The parts of a request. The loop adds a single `await` to them. */
export interface Requests<Answer> {
  /** Returns the index of the next caller. */
  readonly pick: () => number
  readonly ask: (caller: number) => Promise<Answer>
  /** Throws if the answer is wrong. */
  readonly check: (answer: Answer, caller: number) => void
}

/** Keeps `inFlight` requests in flight until the load ends. */
export async function closedLoop<Answer>(
  inFlight: number,
  extent: Extent,
  { pick, ask, check }: Requests<Answer>,
): Promise<Load> {
  const most = 'requests' in extent ? extent.requests : Number.POSITIVE_INFINITY
  let sent = 0
  let isOver = false
  const end = () => {
    isOver = true
  }
  const timer = 'ms' in extent ? setTimeout(end, extent.ms) : undefined

  async function run(): Promise<void> {
    while (!isOver && sent < most) {
      sent++
      const caller = pick()
      check(await ask(caller), caller)
    }
  }

  const cpu = process.cpuUsage()
  const start = performance.now()
  try {
    await Promise.all(Array.from({ length: inFlight }, run))
  } finally {
    end()
    clearTimeout(timer)
  }
  const seconds = (performance.now() - start) / 1000
  const { user, system } = process.cpuUsage(cpu)
  return { requests: sent, seconds, clientCpuSeconds: (user + system) / 1e6 }
}

export function perSecond({ requests, seconds }: Load): number {
  return requests / seconds
}

export function clientCpuOf({ requests, clientCpuSeconds }: Load): number {
  return clientCpuSeconds / requests
}
