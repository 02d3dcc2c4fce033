import { ManualClock } from '../../src/testing/index.ts'
import { type Limiters, START_MS, type Step } from './alphabet.ts'
import { OraclePlayer } from './oracle-player.ts'
import type { Result } from './result.ts'

/** A history, and what the oracle says to each of its steps; nothing to one of time. */
export interface Told {
  readonly steps: readonly Step[]
  readonly results: readonly (Result | undefined)[]
}

interface Node extends Told {
  readonly nowMs: number
  /** By key. */
  readonly players: readonly [OraclePlayer, OraclePlayer]
}

/**
 * All histories of up to `depth` of these steps, each once, in a fixed order: those that begin by asking about the first
 * key, for the other ones are the same with the keys exchanged or the time moved, and that end by asking something.
 */
export function* histories(limiters: Limiters, alphabet: readonly Step[], depth: number): Generator<Told> {
  const clock = new ManualClock(START_MS)
  const players = [new OraclePlayer(limiters, clock), new OraclePlayer(limiters, clock)] as const
  yield* grown({ steps: [], results: [], nowMs: START_MS, players }, clock, alphabet, depth)
}

function* grown(node: Node, clock: ManualClock, alphabet: readonly Step[], depth: number): Generator<Told> {
  for (const step of alphabet) {
    if (node.steps.length === 0 && (isTime(step) || step.key === 1)) continue
    const next = isTime(step) ? later(node, step, depth) : asked(node, step, clock)
    if (next === undefined) continue
    if (!isTime(step)) yield next
    if (next.steps.length < depth) yield* grown(next, clock, alphabet, depth)
  }
}

function isTime({ event }: Step): boolean {
  return event.type === 'wait'
}

function later(node: Node, step: Step, depth: number): Node | undefined {
  const ms = waited(step)
  const last = node.steps.at(-1)
  const isSame = last !== undefined && isTime(last) && ms > 0 && waited(last) > ms
  // Nobody asks any more; or the same has been in another order.
  if (node.steps.length === depth - 1 || isSame) return undefined
  return {
    ...node,
    steps: [...node.steps, step],
    results: [...node.results, undefined],
    nowMs: node.nowMs + ms,
  }
}

export function waited({ event }: Step): number {
  return event.type === 'wait' ? event.ms : 0
}

function asked(node: Node, step: Step, clock: ManualClock): Node | undefined {
  const { key, event } = step
  if (event.type === 'wait') return undefined
  clock.set(node.nowMs)
  const player = node.players[key].copy()
  const [result] = player.results(event)
  // There was nothing to return or to extend.
  if (result === undefined) return undefined
  const players = key === 0 ? ([player, node.players[1]] as const) : ([node.players[0], player] as const)
  return { ...node, steps: [...node.steps, step], results: [...node.results, result], players }
}
