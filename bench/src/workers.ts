import { type ChildProcess, fork } from 'node:child_process'

/** A child process that answers messages. */
export interface Worker<Message, Answer> {
  ask(message: Message): Promise<Answer>
  end(): void
}

/** Starts `count` processes that run a module. They exit with this one. */
export function startWorkers<Message, Answer>(module: URL, count: number): Worker<Message, Answer>[] {
  return Array.from({ length: count }, () => {
    const child = fork(module)
    const endWithUs = () => child.kill('SIGKILL')
    process.once('exit', endWithUs)
    return {
      ask: (message) => answerOf<Message, Answer>(child, message),
      end() {
        process.off('exit', endWithUs)
        child.kill('SIGKILL')
      },
    }
  })
}

function answerOf<Message, Answer>(child: ChildProcess, message: Message): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const onExit = (code: number | null) => reject(new Error(`A worker exited with code ${code}`))
    child.once('exit', onExit)
    child.once('message', ({ answer, error }: { answer: Answer; error?: string }) => {
      child.off('exit', onExit)
      if (error === undefined) resolve(answer)
      else reject(new Error(`A worker failed: ${error}`))
    })
    child.send(message as object)
  })
}

/** Answers messages in a worker process. */
export function serve<Message, Answer>(answer: (message: Message) => Promise<Answer>): void {
  process.on('message', async (message: Message) => {
    try {
      process.send!({ answer: await answer(message) })
    } catch (error) {
      process.send!({ error: error instanceof Error ? error.message : String(error) })
    }
  })
  process.on('disconnect', () => process.exit())
}
