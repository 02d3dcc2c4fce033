import type { TcpProxy } from '../support/tcp-proxy.ts'
import type { Course } from './fault.ts'

export function lasting(
  begin: (proxy: TcpProxy) => void,
  end: (proxy: TcpProxy) => void = (proxy) => proxy.heal(),
): (proxy: TcpProxy) => Course {
  return (proxy) => ({ inject: async () => begin(proxy), heal: async () => end(proxy) })
}

/** What happens to one connection only: again and again. */
export function repeated(cut: (proxy: TcpProxy) => void): (proxy: TcpProxy) => Course {
  return (proxy) => {
    let timer: NodeJS.Timeout | undefined
    return {
      async inject() {
        cut(proxy)
        timer = setInterval(() => cut(proxy), 100)
      },
      async heal() {
        clearInterval(timer)
        proxy.heal()
      },
    }
  }
}
