import type { Admin } from '../admin/admin.ts'
import { gauge, type Metric, type Row } from './metric.ts'

/** Limiters of which it is found out anew at a time: of each it takes half a millisecond. */
const AT_A_TIME = 64

type Found = Awaited<ReturnType<Admin['callersOf']>>

/** How many ask, and whether one of them makes up most of it. Of many limiters some are as they were a few looks ago. */
export class Callers {
  /** What was found out longest ago comes first. */
  readonly #found = new Map<string, Found>()

  /** @param limiters of which it is told, and of no others */
  async metrics(limiters: readonly string[], ask: Admin['callersOf']): Promise<Metric[]> {
    const wanted = new Set(limiters)
    for (const limiter of this.#found.keys()) if (!wanted.has(limiter)) this.#found.delete(limiter)
    const unknown = limiters.filter((limiter) => !this.#found.has(limiter))
    const next = [...unknown, ...this.#found.keys()].slice(0, AT_A_TIME)
    const answers = await Promise.all(next.map(async (limiter) => [limiter, await ask(limiter)] as const))
    for (const [limiter, found] of answers) {
      this.#found.delete(limiter)
      this.#found.set(limiter, found)
    }
    const each = (of: keyof Found): Row<number>[] =>
      Array.from(this.#found, ([limiter, found]) => [{ limiter }, found[of]])
    return [
      gauge('slidegate_distinct_callers', 'Different keys of the last minutes, estimated.', each('distinct')),
      gauge(
        'slidegate_top_caller_share',
        'Share of the requests of the last minutes that the busiest key has made.',
        each('topShare'),
      ),
    ]
  }
}
