import { stat } from 'node:fs/promises'
import { Presets, SingleBar } from 'cli-progress'

/** What is told of how far a replay is. */
export interface Progress {
  /** So many bytes of the file are read. */
  at(bytes: number): void
  end(): void
}

const NOBODY: Progress = { at: () => {}, end: () => {} }

/** A bar on the standard error, where that is a terminal and there is an end to be seen. */
export async function progressOf(file: string): Promise<Progress> {
  if (file === '-' || process.stderr.isTTY !== true) return NOBODY
  const found = await stat(file).catch(() => undefined)
  if (found === undefined || !found.isFile()) return NOBODY
  const bar = new SingleBar(
    {
      format: '  {bar} {percentage}%',
      stream: process.stderr,
      clearOnComplete: true,
      // Whoever ends the command in the midst keeps his terminal as it was; a handler of signals would keep him from ending it.
      linewrap: true,
      gracefulExit: false,
    },
    Presets.shades_classic,
  )
  bar.start(found.size, 0)
  return { at: (bytes) => bar.update(Math.min(bytes, found.size)), end: () => bar.stop() }
}
