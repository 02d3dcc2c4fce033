import { accessSync, constants, type Stats, statSync } from 'node:fs'
import { rename, rm, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { messageOf, UsageError } from '../errors.ts'
import { printable } from '../text.ts'

/**
 * Says before a long replay what its end would say.
 *
 * @throws {UsageError} where the report would take the place of what is read, or of what is no file
 */
export function mustBeWritable(report: string, input: string): void {
  const shown = printable(report, 200)
  const [present, read] = [statOf(report), input === '-' ? undefined : statOf(input)]
  if (present !== undefined && present.ino === read?.ino && present.dev === read.dev)
    throw new UsageError(`--report is "${shown}", which is the log that is read`)
  if (present !== undefined && !present.isFile())
    throw new UsageError(`--report is "${shown}", which is no file`)
  try {
    accessSync(dirname(report), constants.W_OK)
  } catch (error) {
    throw new Error(`cannot write ${shown}: ${messageOf(error)}`, { cause: error })
  }
}

/** All of it, or nothing: whoever reads the file finds the former report until the new one is there. */
export async function writeReport(file: string, text: string): Promise<void> {
  const unfinished = `${file}.${process.pid}.tmp`
  try {
    await writeFile(unfinished, text, { flag: 'wx' })
    await rename(unfinished, file)
  } catch (error) {
    await rm(unfinished, { force: true })
    throw new Error(`cannot write ${printable(file, 200)}: ${messageOf(error)}`, { cause: error })
  }
}

function statOf(file: string): Stats | undefined {
  return statSync(file, { throwIfNoEntry: false })
}
