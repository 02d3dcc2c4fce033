import { asUnavailable, noAnswer, SlidegateError } from '../../errors.ts'
import { START_MS, Start } from '../start.ts'
import type { CallCounts } from './call-counts.ts'
import type { Connection } from './connection.ts'

const RETRY_MS = 20

/**
 * Resolves with the first answer. Tries again for 2 s.
 *
 * @throws {StoreUnavailableError} if there is none
 * @throws {SlidegateError} `invalid_option` if no client is installed, `closed`
 */
export async function firstAnswer(connection: Connection, counts: CallCounts): Promise<void> {
  const script = connection.scriptRunner(counts)
  const start = new Start()
  let isAnswered = false
  let failure: unknown
  const ask = async () => {
    while (!start.isOver) {
      try {
        // Without any op: it loads the script.
        await script.run([], [])
        isAnswered = true
        return
      } catch (error) {
        if (error instanceof SlidegateError) throw error
        failure = error
        await new Promise((resolve) => setTimeout(resolve, RETRY_MS))
      }
    }
  }
  try {
    await Promise.race([ask(), start.whenOver])
  } finally {
    start.end()
  }
  if (isAnswered) return
  if (failure !== undefined) throw asUnavailable(failure, connection.server)
  throw noAnswer(connection.silence(), START_MS)
}
