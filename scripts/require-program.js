// Makes sure that a program which the tests or the linter need is on this machine.
//
//   node scripts/require-program.js redis-server
//
// Found on the PATH: nothing to do. Missing, on Debian or Ubuntu with root: installed with apt.
// Otherwise: says what to install, and fails.
import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'

/** @type {Record<string, { package: string, elsewhere: string }>} */
const PROGRAMS = {
  'redis-server': {
    package: 'redis-server',
    elsewhere: 'Redis 7.0 or later (or Valkey 7.2 or later, as redis-server)',
  },
  luacheck: { package: 'lua-check', elsewhere: 'luacheck (Debian: lua-check, macOS: brew install luacheck)' },
}

const program = process.argv[2] ?? ''
const wanted = PROGRAMS[program]
if (wanted === undefined) {
  console.error(`unknown program "${program}"; known are: ${Object.keys(PROGRAMS).join(', ')}`)
  process.exit(2)
}

const isInstalled = () => !spawnSync(program, ['--version'], { stdio: 'ignore' }).error

if (!isInstalled()) {
  const mayInstall = existsSync('/etc/debian_version') && process.getuid?.() === 0
  if (!mayInstall) {
    console.error(
      `${program} is needed and was not found. Please install ${wanted.elsewhere}, then run this again.`,
    )
    process.exit(1)
  }
  console.log(`${program} was not found: installing the package ${wanted.package} with apt`)
  // RUNLEVEL 1 keeps the package from starting a service of its own: the tests start theirs.
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive', RUNLEVEL: '1' }
  execFileSync('apt-get', ['update', '-qq'], { stdio: 'inherit', env })
  execFileSync('apt-get', ['install', '-y', '-qq', '--no-install-recommends', wanted.package], {
    stdio: 'inherit',
    env,
  })
  if (!isInstalled()) {
    console.error(`${program} is still missing after installing ${wanted.package}`)
    process.exit(1)
  }
}
