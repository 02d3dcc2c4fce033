import { startWorkers, type Worker } from '../workers.ts'
import type { Judgement } from './app.ts'
import type { LoadRequest, LoadResult } from './generator.ts'
import type { FromServer, ServerOptions, ToServer } from './server.ts'

/** A server in its own process. The load generator runs in another. */
export interface Server {
  /** Runs a turn of load. Also measures the server's CPU time. */
  load(request: Omit<LoadRequest, 'port'>): Promise<Turn>
  judgement(): Promise<Judgement>
  end(): void
}

export interface Turn extends LoadResult {
  readonly perSecond: number
  /** CPU time of the server per request. */
  readonly cpuSeconds: number
}

export type Generator = Worker<LoadRequest, LoadResult>

export function startGenerator(): Generator {
  return startWorkers<LoadRequest, LoadResult>(new URL('./generator.ts', import.meta.url), 1)[0]!
}

export async function startServer(generator: Generator, options: ServerOptions): Promise<Server> {
  const module = new URL('./server.ts', import.meta.url)
  const worker = startWorkers<ToServer, FromServer>(module, 1)[0]!
  const port = (await worker.ask(options)) as number
  return {
    async load(request) {
      const before = (await worker.ask('cpu seconds')) as number
      const result = await generator.ask({ ...request, port })
      const after = (await worker.ask('cpu seconds')) as number
      return {
        ...result,
        perSecond: result.requests / result.seconds,
        cpuSeconds: (after - before) / result.requests,
      }
    },
    judgement: async () => (await worker.ask('judgement')) as Judgement,
    end: () => worker.end(),
  }
}
