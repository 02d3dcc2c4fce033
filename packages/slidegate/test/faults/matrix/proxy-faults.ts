import { startRedis } from '../../support/redis-server.ts'
import { startProxy, type TcpProxy } from '../../support/tcp-proxy.ts'
import type { Course, Fault, Scene } from './fault.ts'

function lasting(
  begin: (proxy: TcpProxy) => void,
  end: (proxy: TcpProxy) => void = (proxy) => proxy.heal(),
): (proxy: TcpProxy) => Course {
  return (proxy) => ({ inject: async () => begin(proxy), heal: async () => end(proxy) })
}

/** Creates a fault of single connections, repeated every 100 ms. */
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

/** Starts a new server behind a proxy for each fault. */
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
    title: 'replies delayed by 20 ms',
    on: 'proxy',
    isFelt: 'never',
    keepsData: true,
    lastsMs: 500,
    setUp: behindProxy(lasting((proxy) => proxy.delay(20))),
  },
  {
    name: 'delay-200',
    title: 'replies delayed by 200 ms',
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
    title: 'commands executed, replies lost',
    on: 'proxy',
    isFelt: 'surely',
    keepsData: true,
    lastsMs: 600,
    setUp: behindProxy(lasting((proxy) => proxy.dropReplies())),
  },
  {
    name: 'black-hole',
    title: 'packets lost both ways, then connections reset',
    on: 'proxy',
    isFelt: 'surely',
    keepsData: true,
    lastsMs: 600,
    setUp: behindProxy(lasting((proxy) => proxy.blackHole())),
  },
  {
    name: 'silence',
    title: 'packets lost, and the connections stay silent',
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
    title: 'connections refused',
    on: 'proxy',
    isFelt: 'surely',
    keepsData: true,
    lastsMs: 600,
    setUp: behindProxy(lasting((proxy) => proxy.refuse())),
  },
]
