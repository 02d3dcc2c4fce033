import { type ChildProcess, fork } from 'node:child_process'

/** Another process of the bench, which answers what it is told. */
export interface Worker<Told, Answer> {
  ask(told: Told): Promise<Answer>
  end(): void
}

/** Starts processes that run a module; they end with this one. They are ready when they answer. */
export function startWorkers<Told, Answer>(module: URL, count: number): Worker<Told, Answer>[] {
  return Array.from({ length: count }, () => {
    const child = fork(module)
    const endWithUs = () => child.kill('SIGKILL')
    process.once('exit', endWithUs)
    return {
      ask: (told) => answerOf<Told, Answer>(child, told),
      end() {
        process.off('exit', endWithUs)
        child.kill('SIGKILL')
      },
    }
  })
}

function answerOf<Told, Answer>(child: ChildProcess, told: Told): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const onExit = (code: number | null) => reject(new Error(`a worker ended with code ${code}`))
    child.once('exit', onExit)
    child.once('message', ({ answer, error }: { answer: Answer; error?: string }) => {
      child.off('exit', onExit)
      if (error === undefined) resolve(answer)
      else reject(new Error(`a worker failed: ${error}`))
    })
    child.send(told as object)
  })
}

/** The side of the worker: answers all that it is told, one after the other. */
export function serve<Told, Answer>(answer: (told: Told) => Promise<Answer>): void {
  process.on('message', async (told: Told) => {
    try {
      process.send!({ answer: await answer(told) })
    } catch (error) {
      process.send!({ error: error instanceof Error ? error.message : String(error) })
    }
  })
  process.on('disconnect', () => process.exit())
}
