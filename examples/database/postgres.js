// @ts-check
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chownSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { constants, setPriority, tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { createInterface } from 'node:readline'
import { freePort } from '../support/free-port.js'

/** The unit of CPU times in /proc, on every current architecture. */
const TICKS_PER_SECOND = 100

/**
 * Starts a temporary PostgreSQL on loopback.
 *
 * @returns {Promise<{ port: number, cpuSeconds: () => number, stop: () => Promise<void> }>}
 */
export async function startPostgres() {
  const programs = programsFolder()
  const owner = ownerOfServer()
  const folder = mkdtempSync(join(tmpdir(), 'slidegate-postgres-'))
  /** @type {import('node:child_process').ChildProcess | undefined} */
  let started
  const kill = () => {
    started?.kill('SIGQUIT')
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 })
  }
  process.once('exit', kill)
  for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => process.exit(1))

  const data = join(folder, 'data')
  if (owner !== undefined) chownSync(folder, owner.uid, owner.gid)
  const words = ['--no-sync', '--auth=trust', '--username=postgres', '--locale=C', '-D', data]
  execFileSync(join(programs, 'initdb'), words, {
    ...owner,
    cwd: folder,
    stdio: ['ignore', 'ignore', 'inherit'],
  })

  const port = await freePort()
  const settings = {
    ...{ listen_addresses: '127.0.0.1', port, unix_socket_directories: '', max_connections: 20 },
    ...{ shared_buffers: '16MB', fsync: 'off', autovacuum: 'off' },
    // One process per query, so that the pool limits the CPU time.
    ...{ max_parallel_workers_per_gather: 0, jit: 'off', lc_messages: 'C' },
  }
  const set = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`])
  const server = spawn(join(programs, 'postgres'), ['-D', data, ...set], {
    ...owner,
    cwd: folder,
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  started = server
  // Other programs come first, as if the database ran on its own machine.
  setPriority(/** @type {number} */ (server.pid), constants.priority.PRIORITY_BELOW_NORMAL)

  const log = []
  for await (const line of createInterface(server.stderr)) {
    log.push(line)
    if (!line.includes('ready to accept connections')) continue
    server.stderr.resume()
    return {
      port,
      cpuSeconds: () => cpuSecondsOf(/** @type {number} */ (server.pid)),
      async stop() {
        // Waits for open connections to close.
        server.kill('SIGTERM')
        await once(server, 'exit')
        process.off('exit', kill)
        rmSync(folder, { recursive: true })
      },
    }
  }
  throw new Error(`PostgreSQL exited before it was ready. Its log:\n${log.join('\n')}`)
}

/** Returns the folder of PostgreSQL's programs. Debian doesn't add it to the PATH. */
function programsFolder() {
  const debian = '/usr/lib/postgresql'
  const versions = existsSync(debian) ? readdirSync(debian).sort((a, b) => Number(b) - Number(a)) : []
  const folder = [
    ...(process.env.PATH ?? '').split(delimiter),
    ...versions.map((version) => join(debian, version, 'bin')),
  ].find((each) => ['initdb', 'postgres'].every((program) => existsSync(join(each, program))))
  if (folder === undefined) {
    throw new Error(
      'Found no PostgreSQL. Install it (Debian: apt-get install postgresql), or add the folder with initdb and postgres to the PATH.',
    )
  }
  return folder
}

/**
 * Returns the user that runs the server, unless it's the current one. PostgreSQL doesn't run as root.
 *
 * @returns {{ uid: number, gid: number } | undefined}
 */
function ownerOfServer() {
  if (process.getuid?.() !== 0) return undefined
  const id = (/** @type {string} */ which) =>
    Number(execFileSync('id', [which, 'postgres'], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }))
  try {
    return { uid: id('-u'), gid: id('-g') }
  } catch (cause) {
    throw new Error('PostgreSQL needs a user other than root. Create the user postgres.', { cause })
  }
}

/** Returns the CPU time of a process and its children, ended ones included. Linux only. @param {number} pid */
function cpuSecondsOf(pid) {
  let ticks = 0
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name)) continue
    const stat = statOf(name)
    // The name of the process, in parentheses, may contain spaces.
    const [, parent, ...fields] = stat
      .slice(stat.lastIndexOf(')') + 2)
      .split(' ')
      .map(Number)
    const [user = 0, system = 0, endedUser = 0, endedSystem = 0] = fields.slice(9)
    if (name === `${pid}`) ticks += user + system + endedUser + endedSystem
    else if (parent === pid) ticks += user + system
  }
  return ticks / TICKS_PER_SECOND
}

/** Returns the counts of a process, or nothing if it has just ended. @param {string} pid */
function statOf(pid) {
  try {
    return readFileSync(`/proc/${pid}/stat`, 'utf8')
  } catch {
    return ''
  }
}
