// This instance: its version, its secrets, its processes.

import cluster from 'node:cluster'
import { createHmac, randomBytes, randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'

const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
  version: string
}

/** Of the service and the command line. */
export const VERSION: string = version

const VARIABLE = 'SLIDEGATE_INSTANCE_SECRET'

/** Drawn anew by each instance, so that its workers spell a key alike in what they write, and nobody can guess it. */
export const INSTANCE_SECRET: string =
  (cluster.isWorker ? process.env[VARIABLE] : undefined) ?? randomBytes(32).toString('base64url')

/** The token of the admin link. Each start makes another one, which all workers know. */
export const ADMIN_TOKEN: string = createHmac('sha256', INSTANCE_SECRET)
  .update('admin link')
  .digest('base64url')

/** What workers have to find in their environment. */
export const SECRET_OF_WORKERS: Readonly<Record<string, string>> = { [VARIABLE]: INSTANCE_SECRET }

/** The processes that are one service together on this machine. */
export interface Processes {
  /** What all of them call themselves together: drawn when it starts. */
  readonly instance: string
  /** How others of them are answered, and this one. */
  answer(question: string, answer: (argument: unknown) => unknown): void
  /** Asks all of them, this one too; of those that are gone there is no answer. Arguments and answers are plain JSON. */
  ask(question: string, argument?: unknown): Promise<readonly unknown[]>
}

/** A process that is the service on its own. */
export class OneProcess implements Processes {
  readonly instance: string
  readonly #answers = new Map<string, (argument: unknown) => unknown>()

  constructor(instance: string = randomUUID()) {
    this.instance = instance
  }

  answer(question: string, answer: (argument: unknown) => unknown): void {
    this.#answers.set(question, answer)
  }

  async ask(question: string, argument?: unknown): Promise<readonly unknown[]> {
    const answer = this.#answers.get(question)
    return answer === undefined ? [] : [await answer(argument)]
  }
}
