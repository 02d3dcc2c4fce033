// Installs the packages of folders with their own lockfile.
//
//   node scripts/install.js bench docs
//
// Does nothing if the installed packages match the lockfile.

import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { ownEnvironment } from './own-environment.js'

const root = join(import.meta.dirname, '..')
const SETTINGS = ['--prefer-offline', '--no-audit', '--no-fund', '--loglevel=error']

for (const folder of process.argv.slice(2)) install(folder)

/** @param {string} folder relative to the root */
function install(folder) {
  const lockfile = join(root, folder, 'package-lock.json')
  const stamp = join(root, folder, 'node_modules/.installed-from')
  const version = createHash('sha256').update(readFileSync(lockfile)).digest('hex')
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === version) return
  console.log(`Installing the packages of ${folder}/ (once)`)
  const { status } = spawnSync('npm', ['ci', ...SETTINGS], {
    cwd: join(root, folder),
    env: ownEnvironment(),
    stdio: 'inherit',
  })
  if (status !== 0) process.exit(status ?? 1)
  writeFileSync(stamp, version)
}
