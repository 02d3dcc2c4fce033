import { FOREVER, type InForce } from '../limits/override.ts'
import type { ConsumeOutcome, Op, Outcome, Part } from '../stores/store.ts'
import { KeyRing } from './by-key.ts'

/** Keys whose overrides are remembered. Beyond, the oldest go. */
const MAX_KEYS = 10_000

interface Seen {
  inForce: InForce | undefined
  atMs: number
}

/** Overrides that decisions have read, for answers while the store is down. */
export class SeenOverrides {
  readonly #seen = new KeyRing<Seen>(MAX_KEYS)
  #isEmpty = true

  /** Called with each outcome of the store. */
  learn({ type, parts }: Op, outcome: Outcome, nowMs: number): void {
    const isTold = outcome !== undefined && 'admitted' in outcome
    const overrides = isTold ? outcome.overrides : undefined
    if (!(isTold || type === 'override') || (this.#isEmpty && overrides === undefined)) return
    for (let i = 0; i < parts.length; i++) {
      if (parts[i]!.set.isOverridable) this.#keep(parts[i]!, overrides?.[i], nowMs)
    }
  }

  /** The overrides in force per part, as far as they are known. */
  of(parts: readonly Part[], nowMs: number): ConsumeOutcome['overrides'] {
    if (this.#isEmpty) return undefined
    const found = parts.map((part) => {
      const seen = part.set.isOverridable ? this.#seen.get(part) : undefined
      return seen?.inForce && after(nowMs - seen.atMs, seen.inForce)
    })
    return found.some((each) => each !== undefined) ? found : undefined
  }

  #keep(part: Part, inForce: InForce | undefined, nowMs: number): void {
    const seen = this.#seen.get(part)
    if (seen !== undefined) {
      seen.inForce = inForce
      seen.atMs = nowMs
    } else if (inForce !== undefined) {
      this.#isEmpty = false
      this.#seen.add(part, { inForce, atMs: nowMs })
    }
  }
}

function after(passedMs: number, { rule, ruleMs, blockedMs }: InForce): InForce | undefined {
  const [ruleLeftMs, blockedLeftMs] = [ruleMs, blockedMs].map((ms) =>
    ms === FOREVER ? FOREVER : Math.max(0, Math.ceil(ms - passedMs)),
  ) as [number, number]
  if (ruleLeftMs === 0 && blockedLeftMs === 0) return undefined
  return { rule: ruleLeftMs === 0 ? '' : rule, ruleMs: ruleLeftMs, blockedMs: blockedLeftMs }
}
