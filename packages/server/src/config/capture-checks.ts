import { accessSync, constants } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { messageOf } from '../errors.ts'
import { storeConfigOf } from '../service/store.ts'
import type { Checked } from './checks.ts'
import type { Path } from './reader.ts'

/** Where lines about requests go. */
export function checkCapture(checked: Checked): void {
  const { config, environment, isSound, complain } = checked
  const { capture, logging } = config
  if (isSound(['logging']) && logging?.decisionFile !== undefined)
    checkFile(checked, ['logging', 'decisionFile'], logging.decisionFile)
  if (!isSound(['capture']) || capture === undefined) return
  const { file, stream = false } = capture
  if ((file === undefined) === !stream) complain(['capture'], 'there must be one of file and stream: true')
  else if (file !== undefined) checkFile(checked, ['capture', 'file'], file)
  else if (isSound(['store']) && storeConfigOf(config.store, environment).redis === undefined)
    complain(['capture', 'stream'], 'the store is in memory; a stream needs store.redis or REDIS_URL')
}

function checkFile({ folder, looksAtFiles, complain }: Checked, path: Path, file: string): void {
  if (!looksAtFiles) return
  try {
    accessSync(dirname(resolve(folder, file)), constants.W_OK)
  } catch (error) {
    complain(path, `the file cannot be written: ${messageOf(error)}`)
  }
}
