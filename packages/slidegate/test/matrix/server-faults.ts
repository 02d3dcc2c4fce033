import { type RedisServer, startRedis } from '../support/redis-server.ts'
import type { Course, Fault, Scene } from './fault.ts'
import {
  busy,
  demote,
  fill,
  flush,
  forgetScripts,
  freeze,
  load,
  PAUSE_MS,
  pause,
  restart,
  SLOW_LOADING,
} from './server-courses.ts'

/** A server of its own for each. */
function onServer(course: (server: RedisServer) => Course, settings: readonly string[] = []) {
  return async (): Promise<Scene> => {
    const server = await startRedis(settings)
    return { target: { port: server.port }, ...course(server), end: () => server.stop() }
  }
}

/** What is written outlives the process, though not the machine; to wait for the disk would be a fault of its own. */
const APPENDED = ['--appendonly', 'yes', '--appendfsync', 'no']

export const SERVER_FAULTS: readonly Fault[] = [
  {
    name: 'kill',
    title: 'killed, and started again empty',
    on: 'server',
    isFelt: 'surely',
    keepsData: false,
    lastsMs: 600,
    setUp: onServer(restart),
  },
  {
    name: 'kill-kept',
    title: 'killed, and started again with its data (`appendonly`)',
    on: 'server',
    isFelt: 'surely',
    keepsData: true,
    lastsMs: 600,
    setUp: onServer(restart, APPENDED),
  },
  {
    name: 'freeze',
    title: 'stands still (`SIGSTOP`), and goes on',
    on: 'server',
    isFelt: 'surely',
    keepsData: true,
    lastsMs: 600,
    setUp: onServer(freeze),
  },
  {
    name: 'pause',
    title: '`CLIENT PAUSE`',
    on: 'server',
    isFelt: 'surely',
    keepsData: true,
    lastsMs: PAUSE_MS,
    setUp: onServer(pause),
  },
  {
    name: 'script-flush',
    title: '`SCRIPT FLUSH`, every 50 ms',
    on: 'server',
    isFelt: 'never',
    keepsData: true,
    lastsMs: 400,
    setUp: onServer(forgetScripts),
  },
  {
    name: 'flushall',
    title: '`FLUSHALL`',
    on: 'server',
    isFelt: 'never',
    keepsData: false,
    lastsMs: 200,
    setUp: onServer(flush),
  },
  {
    name: 'readonly',
    title: 'made a replica (`READONLY`), and a primary again',
    on: 'server',
    isFelt: 'surely',
    keepsData: true,
    lastsMs: 600,
    setUp: onServer(demote),
  },
  {
    name: 'full',
    title: '`maxmemory` reached (`noeviction`), and relief',
    on: 'server',
    isFelt: 'perhaps',
    keepsData: true,
    lastsMs: 600,
    setUp: onServer(fill, ['--maxmemory-policy', 'noeviction']),
  },
  {
    name: 'loading',
    title: 'started again, and `LOADING`',
    on: 'server',
    isFelt: 'surely',
    keepsData: false,
    lastsMs: 300,
    setUp: onServer(load, SLOW_LOADING),
  },
  {
    name: 'busy',
    title: "`BUSY` with another's script, until `SCRIPT KILL`",
    on: 'server',
    isFelt: 'surely',
    keepsData: true,
    lastsMs: 600,
    setUp: onServer(busy, ['--busy-reply-threshold', '10']),
  },
]
