import type { Decision } from '../../decision.ts'
import type { ConsumeOp, ConsumeOutcome, Op, Outcome, Part } from '../../stores/store.ts'
import type { Names } from '../names.ts'
import type { Answer } from './answers.ts'
import type { Asker, Question } from './queue.ts'

/** What a limiter does for those who wait for it. */
interface Limiting {
  readonly names: Names
  apply(op: Op): Promise<Outcome>
  decide(op: ConsumeOp, outcome: ConsumeOutcome, position: number): Decision
  giveBack(decision: Decision): Promise<void>
}

/** Asks a limiter's store for those who wait. */
export class LimiterAsker implements Asker {
  readonly #limiting: Limiting

  constructor(limiting: Limiting) {
    this.#limiting = limiting
  }

  async ask(parts: readonly Part[], { cost, count }: Question): Promise<Answer> {
    const names = this.#limiting.names.made(parts)
    const op: ConsumeOp = { type: 'consume', parts, cost, count, leaseMs: 0, isWaiting: true, ...names }
    return { op, outcome: (await this.#limiting.apply(op)) as ConsumeOutcome }
  }

  decide(op: ConsumeOp, outcome: ConsumeOutcome, position: number): Decision {
    return this.#limiting.decide(op, outcome, position)
  }

  giveBack(op: ConsumeOp, outcome: ConsumeOutcome, position: number): void {
    // What gets lost on its way leaves the window in time.
    this.#limiting.giveBack(this.decide(op, outcome, position)).catch(() => {})
  }
}
