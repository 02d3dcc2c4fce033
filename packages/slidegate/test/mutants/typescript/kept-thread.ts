import type { Plugin } from 'vitest/config'
import { type PoolOptions, type PoolWorker, ThreadsPoolWorker, type WorkerRequest } from 'vitest/node'

// To start a thread and to load everything there takes longer than the tests of a mutant: so a thread stays for many.

const RUNS_OF_A_THREAD = 100

let kept: { readonly worker: ThreadsPoolWorker; runs: number } | undefined

type Listener = (message: unknown) => void

class KeptThread implements PoolWorker {
  readonly name = 'kept-thread'
  readonly #options: PoolOptions
  readonly #listeners: [event: string, listener: Listener][] = []

  constructor(options: PoolOptions) {
    this.#options = options
  }

  async start(): Promise<void> {
    kept ??= { worker: new ThreadsPoolWorker(this.#options), runs: 0 }
    if (kept.runs++ > 0) return
    const { worker } = kept
    await worker.start()
    // One that dies between two runs is nobody's failure: the next run has another.
    worker.on('error', () => {
      if (kept?.worker === worker) kept = undefined
    })
  }

  on(event: string, listener: Listener): void {
    this.#listeners.push([event, listener])
    kept?.worker.on(event, listener)
  }

  off(event: string, listener: Listener): void {
    kept?.worker.off(event, listener)
  }

  send(message: WorkerRequest): void {
    if (message.type !== 'stop') kept?.worker.send(message)
    // It is not asked to stop, and so has to be spoken for.
    else for (const [event, listener] of this.#listeners) if (event === 'message') listener(STOPPED)
  }

  async stop(): Promise<void> {
    for (const [event, listener] of this.#listeners) this.off(event, listener)
    if (kept === undefined || kept.runs < RUNS_OF_A_THREAD) return
    const { worker } = kept
    kept = undefined
    await worker.stop()
  }

  deserialize(data: unknown): unknown {
    return data
  }
}

const STOPPED = { type: 'stopped', __vitest_worker_response__: true }

export const keptThread: Plugin = {
  name: 'kept-thread',
  configureVitest({ project }) {
    const name = 'kept-thread'
    project.config.pool = name
    project.config.poolRunner = { name, createPoolWorker: (options) => new KeptThread(options) }
  },
}
