import type { Selection } from './cells.ts'

const { MATRIX_FAULTS, MATRIX_CLIENTS, MATRIX_POLICIES } = process.env

function list(names: string | undefined): readonly string[] | undefined {
  return names ? names.split(',') : undefined
}

/** What the command line has asked for; nothing in an ordinary test run. */
export const SELECTION: Selection | undefined =
  process.env.MATRIX === 'full'
    ? { faults: list(MATRIX_FAULTS), clients: list(MATRIX_CLIENTS), policies: list(MATRIX_POLICIES) }
    : undefined
