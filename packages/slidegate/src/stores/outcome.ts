// Functions for outcomes: the limits in force, and costs and free capacity per limit.

import type { Limit } from '../limits/limit.ts'
import type { Log } from '../limits/limit-set.ts'
import { setUsed, unused, usedOf } from '../ops/numbers.ts'
import { type ConsumeOutcome, type Debit, type Part, partsInForce, type RequestOp } from '../ops/request.ts'
import type { Op, Outcome } from '../ops/table.ts'

/** The limits in an op's parts, in order. */
export function limitsOf(parts: readonly Part[]): readonly Limit[] {
  return parts.length === 1 ? parts[0]!.set.limits : parts.flatMap(({ set }) => set.limits)
}

export function logsOf(parts: readonly Part[]): readonly Log[] {
  return parts.flatMap(({ set }) => set.logs)
}

/** The op's limits, as changed by the overrides in force. */
export function limitsInForce({ parts }: RequestOp, { overrides }: ConsumeOutcome): readonly Limit[] {
  return limitsOf(partsInForce(parts, overrides))
}

/** The units that a request charges to each limit, in order. */
export function costsOf({ parts, cost }: RequestOp, debits: readonly Debit[]): readonly number[] {
  return debits.flatMap(({ costs }, part) => costs ?? parts[part]!.set.limits.map(() => cost))
}

/** Returns the numbers for limits that weren't read, as if their keys were new. */
export function zerosFor(parts: readonly Part[]): number[] {
  let limits = 0
  for (let part = 0; part < parts.length; part++) limits += parts[part]!.set.limits.length
  return unused(limits)
}

/** How many requests each limit's log had room for. A shadow limit is charged only for that many. */
export function roomsOf(parts: readonly Part[], cost: number, numbers: readonly number[]): readonly number[] {
  const rooms: number[] = []
  let first = 0
  for (const { set } of parts) {
    for (const { serves, role } of set.logs) {
      if (role !== 'count') continue
      const free = serves.map((i) => Math.max(0, set.limits[i]!.limit - usedOf(numbers, first + i)))
      const room = Math.floor(Math.min(...free) / cost)
      for (const i of serves) rooms[first + i] = room
    }
    first += set.limits.length
  }
  return rooms
}

/** The outcome for one of several requests that were decided together. */
export function outcomeAt(op: Op, outcome: Outcome, position: number): Outcome {
  if (op.type !== 'consume' || position === 0) return outcome
  const { admitted, limits: together, ...told } = outcome as ConsumeOutcome
  const limits = together.slice()
  const parts = partsInForce(op.parts, told.overrides)
  let rooms: readonly number[] | undefined
  limitsOf(parts).forEach(({ shadow }, i) => {
    if (shadow) rooms ??= roomsOf(parts, op.cost, together)
    const fitting = Math.min(position, admitted, shadow ? rooms![i]! : admitted)
    setUsed(limits, i, usedOf(together, i) + op.cost * fitting)
  })
  return { ...told, admitted: Math.max(0, admitted - position), limits }
}
