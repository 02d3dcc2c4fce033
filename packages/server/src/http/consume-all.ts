import { type AnyKey, type BulkRequest, type Decision, SlidegateError } from 'slidegate'
import type { ActiveLimiter } from '../service/service.ts'

/** A request, and the limiter that it asks. */
export interface Item {
  readonly active: ActiveLimiter
  readonly request: BulkRequest<AnyKey>
}

/**
 * Requests of several limiters, each decided on its own: those of one limiter travel together. All are checked before any is
 * sent. Where the store gave no answer to those of one limiter, what the others were charged is returned, but for requests
 * with an id: they may be asked for again.
 */
export async function consumeAll(items: readonly Item[]): Promise<readonly Decision[]> {
  const groups = new Map<ActiveLimiter, Item[]>()
  for (const item of items) {
    const group = groups.get(item.active)
    if (group === undefined) groups.set(item.active, [item])
    else group.push(item)
  }
  try {
    // A single limiter checks all by itself, and gives back what there is to give back.
    if (groups.size === 1)
      return await items[0]!.active.limiter.consumeMany(items.map(({ request }) => request))
    await Promise.all(Array.from(groups, ([active, group]) => check(active, group)))
    const decisions = await consumeGroups(Array.from(groups))
    return items.map((item) => decisions.get(item)!)
  } catch (error) {
    throw error instanceof SlidegateError ? await located(items, error) : error
  }
}

async function consumeGroups(
  groups: readonly (readonly [ActiveLimiter, readonly Item[]])[],
): Promise<ReadonlyMap<Item, Decision>> {
  const settled = await Promise.allSettled(
    groups.map(([{ limiter }, group]) => limiter.consumeMany(group.map(({ request }) => request))),
  )
  const decisions = new Map<Item, Decision>()
  groups.forEach(([, group], i) => {
    const outcome = settled[i]!
    if (outcome.status === 'fulfilled')
      group.forEach((item, j) => void decisions.set(item, outcome.value[j]!))
  })
  const failed = settled.find((outcome) => outcome.status === 'rejected')
  if (failed === undefined) return decisions
  await Promise.allSettled(Array.from(decisions, ([item, decision]) => giveBack(item, decision)))
  throw failed.reason
}

async function giveBack({ active, request }: Item, decision: Decision): Promise<void> {
  if (decision.allowed && request.requestId === undefined) await active.limiter.refund(request.key, decision)
}

/** Thrown by the request that stands behind those that are checked, so that none of them is sent. */
const CHECKED = Symbol('all are well-formed')
const LAST = {
  key: '',
  get cost(): number {
    throw CHECKED
  },
}

/** Has the limiter check all of them, as it does before it sends any. @throws {SlidegateError} for the first that is wrong */
async function check({ limiter }: ActiveLimiter, items: readonly Item[]): Promise<void> {
  try {
    await limiter.consumeMany([...items.map(({ request }) => request), LAST])
  } catch (error) {
    if (error !== CHECKED) throw error
  }
}

/** The error with the place of the request that it is about. */
async function located(items: readonly Item[], error: SlidegateError): Promise<SlidegateError> {
  for (const [i, item] of items.entries()) {
    try {
      await check(item.active, [item])
    } catch (found) {
      if (found instanceof SlidegateError) {
        return new SlidegateError(found.code, `requests[${i}]: ${found.message}`, found.value)
      }
    }
  }
  return error
}
