import type { Plugin } from 'vitest/config'
import { type PoolOptions, type PoolWorker, ThreadsPoolWorker, type WorkerRequest } from 'vitest/node'

// Reuses a thread for many mutants, because starting one takes longer than the tests of a mutant.

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
    // If it exits between two runs, the next run starts another one.
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
    // The thread stays, so report it as stopped.
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
