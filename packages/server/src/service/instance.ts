// This instance: its version, secrets and processes.

import cluster from 'node:cluster'
import { createHmac, randomBytes, randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { PACKAGE } from '../package-folder.ts'

const { version } = JSON.parse(readFileSync(new URL('package.json', PACKAGE), 'utf8')) as {
  version: string
}

/** Version of the service and the command line. */
export const VERSION: string = version

const VARIABLE = 'SLIDEGATE_INSTANCE_SECRET'

/** A random secret per instance. All workers hash keys with it, so outsiders can't compute the hashes. */
export const INSTANCE_SECRET: string =
  (cluster.isWorker ? process.env[VARIABLE] : undefined) ?? randomBytes(32).toString('base64url')

/** The token in the admin link. New at each start, and the same in all workers. */
export const ADMIN_TOKEN: string = createHmac('sha256', INSTANCE_SECRET)
  .update('admin link')
  .digest('base64url')

export const SECRET_OF_WORKERS: Readonly<Record<string, string>> = { [VARIABLE]: INSTANCE_SECRET }

/** The processes of this service on this machine. */
export interface Processes {
  /** The ID that all processes share. It is random and changes at each start. */
  readonly instance: string
  /** Sets how this process answers a question. */
  answer(question: string, answer: (argument: unknown) => unknown): void
  /** Sends a question to all processes, including this one. Resolves to their answers. All values are plain JSON. */
  ask(question: string, argument?: unknown): Promise<readonly unknown[]>
}

/** The service's only process. */
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
