// Overrides that the store returned, which still apply while it is down.

import { FOREVER, type InForce } from '../limits/override.ts'
import type { ConsumeOutcome, Op, Outcome, Part } from '../stores/store.ts'
import { KeyRing } from './by-key.ts'

/** Maximum keys with remembered overrides. The oldest are dropped. */
const MAX_OVERRIDES = 10_000

interface Seen {
  inForce: InForce | undefined
  atMs: number
}

/** The overrides of the most recent keys. */
export class SeenOverrides {
  readonly #seen = new KeyRing<Seen>(MAX_OVERRIDES)

  /** Called with the store's outcomes of ops that read overrides. */
  learn(ops: readonly Op[], outcomes: readonly Outcome[], nowMs: number): void {
    for (let i = 0; i < ops.length; i++) this.#learn(ops[i]!, outcomes[i], nowMs)
  }

  #learn({ type, parts }: Op, outcome: Outcome, nowMs: number): void {
    const isRead = outcome !== undefined && 'admitted' in outcome
    if (!isRead && type !== 'override') return
    for (let i = 0; i < parts.length; i++) {
      this.#keep(parts[i]!, isRead ? outcome.overrides?.[i] : undefined, nowMs)
    }
  }

  /** The overrides in force per part, as far as known. */
  of(parts: readonly Part[], nowMs: number): ConsumeOutcome['overrides'] {
    const found = parts.map((part) => {
      const seen = this.#seen.get(part)
      return seen?.inForce && after(nowMs - seen.atMs, seen.inForce)
    })
    return found.some((each) => each !== undefined) ? found : undefined
  }

  #keep(part: Part, inForce: InForce | undefined, atMs: number): void {
    const seen = this.#seen.get(part)
    if (seen !== undefined) {
      seen.inForce = inForce
      seen.atMs = atMs
    } else if (inForce !== undefined) {
      this.#seen.add(part, { inForce, atMs })
    }
  }
}

/** The rest of an override after this time. */
function after(passedMs: number, { rule, ruleMs, blockedMs }: InForce): InForce | undefined {
  const left = (ms: number) => (ms === FOREVER ? FOREVER : Math.max(0, Math.ceil(ms - passedMs)))
  const ruleLeftMs = left(ruleMs)
  const blockedLeftMs = left(blockedMs)
  if (ruleLeftMs === 0 && blockedLeftMs === 0) return undefined
  return { rule: ruleLeftMs === 0 ? '' : rule, ruleMs: ruleLeftMs, blockedMs: blockedLeftMs }
}
