import { startWorkers, type Worker } from '../workers.ts'
import type { Judgement } from './app.ts'
import type { Answered, Asked } from './generator.ts'
import type { FromServer, ServerOptions, ToServer } from './server.ts'

/** A server and what asks it each have a process of their own. */
export interface Server {
  /** A turn of load, and what it took of the server. */
  load(asked: Omit<Asked, 'port'>): Promise<Turn>
  judgement(): Promise<Judgement>
  end(): void
}

export interface Turn extends Answered {
  readonly perSecond: number
  /** CPU time of the server per request. */
  readonly cpuSeconds: number
}

export type Generator = Worker<Asked, Answered>

export function startGenerator(): Generator {
  return startWorkers<Asked, Answered>(new URL('./generator.ts', import.meta.url), 1)[0]!
}

export async function startServer(generator: Generator, options: ServerOptions): Promise<Server> {
  const module = new URL('./server.ts', import.meta.url)
  const worker = startWorkers<ToServer, FromServer>(module, 1)[0]!
  const port = (await worker.ask(options)) as number
  return {
    async load(asked) {
      const before = (await worker.ask('cpu seconds')) as number
      const answered = await generator.ask({ ...asked, port })
      const after = (await worker.ask('cpu seconds')) as number
      return {
        ...answered,
        perSecond: answered.requests / answered.seconds,
        cpuSeconds: (after - before) / answered.requests,
      }
    },
    judgement: async () => (await worker.ask('judgement')) as Judgement,
    end: () => worker.end(),
  }
}
