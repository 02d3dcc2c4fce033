import { startRedis } from '../../support/redis-server.ts'
import { startProxy, type TcpProxy } from '../../support/tcp-proxy.ts'
import type { Course, Fault, Scene } from './fault.ts'

function lasting(
  begin: (proxy: TcpProxy) => void,
  end: (proxy: TcpProxy) => void = (proxy) => proxy.heal(),
): (proxy: TcpProxy) => Course {
  return (proxy) => ({ inject: async () => begin(proxy), heal: async () => end(proxy) })
}

/** What happens to one connection only: again and again. */
function repeated(cut: (proxy: TcpProxy) => void): (proxy: TcpProxy) => Course {
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

/** A server behind a proxy, of its own for each. */
function behindProxy(course: (proxy: TcpProxy) => Course) {
  return async (): Promise<Scene> => {
    const server = await startRedis()
    const proxy = await startProxy(server.port)
    return {
      target: { port: proxy.port },
      ...course(proxy),
      async end() {
        await proxy.stop()
        await server.stop()
      },
    }
  }
}

export const PROXY_FAULTS: readonly Fault[] = [
  {
    name: 'delay-20',
    title: 'replies come 20 ms later',
    on: 'proxy',
    isFelt: 'never',
    keepsData: true,
    lastsMs: 500,
    setUp: behindProxy(lasting((proxy) => proxy.delay(20))),
  },
  {
    name: 'delay-200',
    title: 'replies come 200 ms later',
    on: 'proxy',
    isFelt: 'surely',
    keepsData: true,
    lastsMs: 700,
    setUp: behindProxy(lasting((proxy) => proxy.delay(200))),
  },
  {
    name: 'cut-mid-reply',
    title: 'connections cut in the middle of a reply, every 100 ms',
    on: 'proxy',
    isFelt: 'perhaps',
    keepsData: true,
    lastsMs: 600,
    setUp: behindProxy(repeated((proxy) => proxy.cutMidReply())),
  },
  {
    name: 'cut-after-request',
    title: 'connections cut after a command was executed, every 100 ms',
    on: 'proxy',
    isFelt: 'perhaps',
    keepsData: true,
    lastsMs: 600,
    setUp: behindProxy(repeated((proxy) => proxy.cutAfterRequest())),
  },
  {
    name: 'drop-replies',
    title: 'commands are executed, replies get lost',
    on: 'proxy',
    isFelt: 'surely',
    keepsData: true,
    lastsMs: 600,
    setUp: behindProxy(lasting((proxy) => proxy.dropReplies())),
  },
  {
    name: 'black-hole',
    title: 'packets vanish both ways, then connections are reset',
    on: 'proxy',
    isFelt: 'surely',
    keepsData: true,
    lastsMs: 600,
    setUp: behindProxy(lasting((proxy) => proxy.blackHole())),
  },
  {
    name: 'silence',
    title: 'packets vanish, and these connections stay silent for good',
    on: 'proxy',
    isFelt: 'surely',
    keepsData: true,
    lastsMs: 600,
    backWithinMs: 6000,
    setUp: behindProxy(
      lasting(
        (proxy) => proxy.blackHole(),
        (proxy) => proxy.heal({ leaveSilent: true }),
      ),
    ),
  },
  {
    name: 'refuse',
    title: 'connections are refused',
    on: 'proxy',
    isFelt: 'surely',
    keepsData: true,
    lastsMs: 600,
    setUp: behindProxy(lasting((proxy) => proxy.refuse())),
  },
]
