import { type Logger, pino } from 'pino'

/** Characters that wait to be written at most. */
const MAX_WAITING = 4 * 2 ** 20

/** What a pipe takes in one piece, whoever else writes to it. */
const PIPE_BYTES = 4096

export interface ServiceLog {
  readonly log: Logger
  /** Lines that there was no room for. */
  dropped(): number
}

/** The log of the service, on the standard output. Nothing waits until it is written: what is read too slowly is dropped. */
export function openLog(level: string): ServiceLog {
  let dropped = 0
  const output = pino.destination({ fd: 1, sync: false, maxLength: MAX_WAITING, maxWrite: PIPE_BYTES })
  output.on('drop', () => {
    dropped++
  })
  // Where nothing can be written there is nobody to tell. It is tried again with the next line.
  output.on('error', () => {})
  return { log: pino({ level }, output), dropped: () => dropped }
}
