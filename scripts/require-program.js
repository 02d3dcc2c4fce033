// Makes sure that programs which the tests or the linter need are on this machine.
//
//   node scripts/require-program.js redis-server cc
//
// Found on the PATH: nothing to do. Missing, on Debian or Ubuntu with root: installed with apt.
// Otherwise: says what to install, and fails.
import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'

/** @type {Record<string, { packages: string[], elsewhere: string, version?: string }>} */
const PROGRAMS = {
  'redis-server': {
    packages: ['redis-server'],
    elsewhere: 'Redis 7.0 or later (or Valkey 7.2 or later, as redis-server)',
  },
  luacheck: {
    packages: ['lua-check'],
    elsewhere: 'luacheck (Debian: lua-check, macOS: brew install luacheck)',
  },
  cc: { packages: ['gcc', 'libc6-dev'], elsewhere: 'a C compiler, as cc' },
  curl: { packages: ['curl'], elsewhere: 'curl' },
  openssl: { packages: ['openssl'], elsewhere: 'openssl 3', version: 'version' },
  nginx: { packages: ['nginx'], elsewhere: 'nginx 1.22 or later', version: '-v' },
  caddy: { packages: ['caddy'], elsewhere: 'Caddy 2.6 or later', version: 'version' },
  wrk: { packages: ['wrk'], elsewhere: 'wrk', version: '-v' },
  chromium: { packages: ['chromium', 'fonts-dejavu-core'], elsewhere: 'Chromium' },
  promtool: { packages: ['prometheus'], elsewhere: 'Prometheus 2.42 or later, with promtool' },
  amtool: { packages: ['prometheus-alertmanager'], elsewhere: 'Alertmanager 0.25 or later, with amtool' },
  'systemd-analyze': { packages: ['systemd'], elsewhere: 'systemd (Linux only)' },
}

const programs = process.argv.slice(2)
const unknown = programs.filter((program) => PROGRAMS[program] === undefined)
if (unknown.length > 0 || programs.length === 0) {
  console.error(`unknown: "${unknown.join(' ')}"; known are: ${Object.keys(PROGRAMS).join(', ')}`)
  process.exit(2)
}

/** @param {string} program */
const isInstalled = (program) =>
  !spawnSync(program, [PROGRAMS[program]?.version ?? '--version'], { stdio: 'ignore' }).error

const missing = programs.filter((program) => !isInstalled(program))
if (missing.length > 0) {
  const mayInstall = existsSync('/etc/debian_version') && process.getuid?.() === 0
  if (!mayInstall) {
    for (const program of missing) {
      console.error(`${program} is needed and was not found. Please install ${PROGRAMS[program]?.elsewhere}.`)
    }
    console.error('Then run this again.')
    process.exit(1)
  }
  const packages = missing.flatMap((program) => PROGRAMS[program]?.packages ?? [])
  console.log(`${missing.join(', ')}: not found. Installing with apt: ${packages.join(' ')}`)
  // RUNLEVEL 1 keeps a package from starting a service of its own: the tests start theirs.
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive', RUNLEVEL: '1' }
  execFileSync('apt-get', ['update', '-qq'], { stdio: 'inherit', env })
  execFileSync('apt-get', ['install', '-y', '-qq', '--no-install-recommends', ...packages], {
    stdio: 'inherit',
    env,
  })
  const stillMissing = missing.filter((program) => !isInstalled(program))
  if (stillMissing.length > 0) {
    console.error(`still missing after the installation: ${stillMissing.join(', ')}`)
    process.exit(1)
  }
}
