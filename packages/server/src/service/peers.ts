import { randomUUID } from 'node:crypto'

/** The processes that are one service together on this machine. */
export interface Peers {
  /** What all of them call themselves together: drawn when it starts. */
  readonly instance: string
  /** How others of them are answered, and this one. */
  answer(question: string, answer: (argument: unknown) => unknown): void
  /** Asks all of them, this one too; of those that are gone there is no answer. Arguments and answers are plain JSON. */
  ask(question: string, argument?: unknown): Promise<readonly unknown[]>
}

/** A process that is the service on its own. */
export class Alone implements Peers {
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
