// Checks that the programs a command needs are on the PATH.
//
//   node scripts/require-program.js redis-server cc
//
// On Debian or Ubuntu as root, it installs missing programs with apt, after a prompt if there is a terminal.
// Otherwise it lists what to install, and fails.
import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync, readdirSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { createInterface } from 'node:readline/promises'

/** @type {Record<string, { packages: string[], elsewhere: string, version?: string, orElse?: string }>} */
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
  'chromium-headless-shell': {
    packages: ['chromium-headless-shell', 'fonts-dejavu-core'],
    elsewhere: 'Chromium',
    orElse: 'chromium',
  },
  promtool: { packages: ['prometheus'], elsewhere: 'Prometheus 2.42 or later, with promtool' },
  amtool: { packages: ['prometheus-alertmanager'], elsewhere: 'Alertmanager 0.25 or later, with amtool' },
  valgrind: { packages: ['valgrind'], elsewhere: 'valgrind 3.19 or later (Linux only)' },
  postgres: { packages: ['postgresql'], elsewhere: 'PostgreSQL 13 or later (Linux only)' },
  'systemd-analyze': { packages: ['systemd'], elsewhere: 'systemd (Linux only)' },
}

const programs = process.argv.slice(2)
const unknown = programs.filter((program) => PROGRAMS[program] === undefined)
if (unknown.length > 0 || programs.length === 0) {
  console.error(
    `Unknown program "${unknown.join(' ')}". Expected one of: ${Object.keys(PROGRAMS).join(', ')}.`,
  )
  process.exit(2)
}

/** @param {string} program */
const isInstalled = (program) => {
  const { version = '--version', orElse = program } = PROGRAMS[program] ?? {}
  const env = { ...process.env, PATH: [process.env.PATH, ...postgresFolders()].join(delimiter) }
  return [program, orElse].some((name) => !spawnSync(name, [version], { stdio: 'ignore', env }).error)
}

const missing = programs.filter((program) => !isInstalled(program))
if (missing.length > 0) await install(missing)

/** @param {string[]} missing */
async function install(missing) {
  const packages = missing.flatMap((program) => PROGRAMS[program]?.packages ?? [])
  const mayInstall = existsSync('/etc/debian_version') && process.getuid?.() === 0
  if (!mayInstall || !(await isAgreed(missing, packages))) {
    for (const program of missing) {
      console.error(`${program} is not installed. Install ${PROGRAMS[program]?.elsewhere}.`)
    }
    console.error('Then run this command again.')
    process.exit(1)
  }
  console.log(`Installing with apt: ${packages.join(' ')}`)
  // RUNLEVEL 1 keeps packages from starting services. The tests start their own.
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive', RUNLEVEL: '1' }
  execFileSync('apt-get', ['update', '-qq'], { stdio: 'inherit', env })
  execFileSync('apt-get', ['install', '-y', '-qq', '--no-install-recommends', ...packages], {
    stdio: 'inherit',
    env,
  })
  const stillMissing = missing.filter((program) => !isInstalled(program))
  if (stillMissing.length > 0) {
    console.error(`Still missing after the installation: ${stillMissing.join(', ')}`)
    process.exit(1)
  }
}

/** Returns the folders that Debian doesn't add to the PATH. */
function postgresFolders() {
  const folder = '/usr/lib/postgresql'
  return existsSync(folder) ? readdirSync(folder).map((version) => join(folder, version, 'bin')) : []
}

/**
 * Prompts before an installation. Without a terminal, as in CI, resolves to true.
 *
 * @param {string[]} missing
 * @param {string[]} packages
 */
async function isAgreed(missing, packages) {
  if (process.env.CI || !process.stdin.isTTY || !process.stdout.isTTY) return true
  const terminal = createInterface({ input: process.stdin, output: process.stdout })
  const question = `Missing: ${missing.join(', ')}. Run apt-get install ${packages.join(' ')}? [y/N] `
  // Ctrl-D closes the terminal without an answer.
  const closed = new Promise((resolve) => terminal.once('close', () => resolve('')))
  const answer = await Promise.race([terminal.question(question), closed])
  terminal.close()
  return /^y(es)?$/i.test(String(answer).trim())
}
