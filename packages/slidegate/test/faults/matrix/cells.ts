import type { OnStoreError } from '../../../src/index.ts'
import { CLIENTS, connectorOf, type MatrixClient } from './clients.ts'
import type { Fault } from './fault.ts'
import { FAULTS } from './faults.ts'
import { slownessOf } from './slow-clients.ts'

/** A combination of a fault and a client. */
export interface Cell {
  readonly fault: Fault
  readonly client: MatrixClient
}

const POLICIES: readonly OnStoreError[] = ['throw', 'deny', 'allow', 'local']

/** The selected names. A list that is left out selects all. */
export interface Selection {
  readonly faults?: readonly string[]
  readonly clients?: readonly string[]
  readonly policies?: readonly string[]
}

export function policiesOf({ policies }: Selection): readonly OnStoreError[] {
  return chosen(POLICIES, policies, String)
}

function chosen<T>(all: readonly T[], names: readonly string[] | undefined, nameOf: (one: T) => string): T[] {
  const unknown = names?.filter((name) => !all.some((one) => nameOf(one) === name)) ?? []
  if (unknown.length > 0) {
    throw new Error(`Unknown name: ${unknown.join(', ')}. Expected some of: ${all.map(nameOf).join(', ')}`)
  }
  return all.filter((one) => names?.includes(nameOf(one)) ?? true)
}

/** Returns every fault with every client that it can affect. */
export function cellsOf({ faults, clients }: Selection): Cell[] {
  const named = chosen(CLIENTS, clients, ({ name }) => name)
  return chosen(FAULTS, faults, ({ name }) => name).flatMap((fault) =>
    named
      .filter((client) => connectorOf(client, fault.on) !== undefined)
      .map((client) => ({ fault, client })),
  )
}

/** Clients that reveal a fault best. Double charges become visible only if the client reconnects before the deadline. */
const TELLING: Readonly<Record<string, string>> = {
  'cut-mid-reply': 'ioredis-5-set',
  'cut-after-request': 'ioredis-5-set',
}

/** Returns every fault once, with clients in turn. Slow combinations are left to the full run. */
export function cellsInShort(): Cell[] {
  return FAULTS.filter(({ backWithinMs }) => backWithinMs === undefined).map((fault, i) => {
    const clients = CLIENTS.filter(
      (client) => connectorOf(client, fault.on) !== undefined && slownessOf(fault, client).length === 0,
    )
    const [wanted] = clients.filter(({ name }) => name === TELLING[fault.name])
    return { fault, client: wanted ?? clients[i % clients.length]! }
  })
}

const { MATRIX_FAULTS, MATRIX_CLIENTS, MATRIX_POLICIES } = process.env

function list(names: string | undefined): readonly string[] | undefined {
  return names ? names.split(',') : undefined
}

/** The selection on the command line, or `undefined` in an ordinary test run. */
export const SELECTION: Selection | undefined =
  process.env.MATRIX === 'full'
    ? { faults: list(MATRIX_FAULTS), clients: list(MATRIX_CLIENTS), policies: list(MATRIX_POLICIES) }
    : undefined
