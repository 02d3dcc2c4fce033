/** What a stretch of load was. */
export interface Load {
  readonly requests: number
  readonly seconds: number
  /** CPU time of this process, all of its threads. */
  readonly clientCpuSeconds: number
}

/** When a load ends: after a time, or after a number of requests. */
export type Extent = { readonly ms: number } | { readonly requests: number }

/** A closed loop: `inFlight` callers, each of which asks again as soon as it is answered. */
export async function closedLoop(
  inFlight: number,
  extent: Extent,
  request: () => Promise<void>,
): Promise<Load> {
  const most = 'requests' in extent ? extent.requests : Number.POSITIVE_INFINITY
  let asked = 0
  let isOver = false
  const end = () => {
    isOver = true
  }
  const timer = 'ms' in extent ? setTimeout(end, extent.ms) : undefined

  async function caller(): Promise<void> {
    while (!isOver && asked < most) {
      asked++
      await request()
    }
  }

  const cpu = process.cpuUsage()
  const start = performance.now()
  try {
    await Promise.all(Array.from({ length: inFlight }, caller))
  } finally {
    end()
    clearTimeout(timer)
  }
  const seconds = (performance.now() - start) / 1000
  const { user, system } = process.cpuUsage(cpu)
  return { requests: asked, seconds, clientCpuSeconds: (user + system) / 1e6 }
}

export function perSecond({ requests, seconds }: Load): number {
  return requests / seconds
}

export function clientCpuOf({ requests, clientCpuSeconds }: Load): number {
  return clientCpuSeconds / requests
}
