import { Redis } from 'ioredis'
import { ask } from '../../support/ask.ts'
import { freePort } from '../../support/ports.ts'
import { type RedisServer, startRedis } from '../../support/redis-server.ts'
import { until } from '../../support/until.ts'
import type { Course, Fault, Scene } from './fault.ts'

function restart(server: RedisServer): Course {
  return { inject: () => server.kill(), heal: () => server.start() }
}

function freeze(server: RedisServer): Course {
  return {
    inject: async () => server.freeze(),
    heal: async () => server.thaw(),
  }
}

const PAUSE_MS: number = 700

/** The pause ends on its own. A command to end it would be paused as well. */
function pause({ port }: RedisServer): Course {
  return {
    inject: async () => {
      await ask(port, 'CLIENT', 'PAUSE', PAUSE_MS, 'ALL')
    },
    heal: () => answers(port),
  }
}

async function answers(port: number): Promise<void> {
  await until('an answer', async () => (await ask(port, 'PING')) === 'PONG')
}

/** Repeats an action, so that some calls are affected. */
function repeated(what: () => Promise<unknown>): Course {
  let timer: NodeJS.Timeout | undefined
  return {
    async inject() {
      await what()
      timer = setInterval(() => void what(), 50)
    },
    async heal() {
      clearInterval(timer)
      await what()
    },
  }
}

function forgetScripts({ port }: RedisServer): Course {
  return repeated(() => ask(port, 'SCRIPT', 'FLUSH').catch(() => {}))
}

function flush({ port }: RedisServer): Course {
  return {
    inject: async () => {
      await ask(port, 'FLUSHALL')
    },
    heal: async () => {},
  }
}

/** Makes the server a replica of a server that doesn't exist. It keeps its data and rejects writes. */
function demote({ port }: RedisServer): Course {
  return {
    inject: async () => {
      await ask(port, 'REPLICAOF', '127.0.0.1', await freePort())
    },
    heal: async () => {
      await ask(port, 'REPLICAOF', 'NO', 'ONE')
    },
  }
}

function fill({ port }: RedisServer): Course {
  return {
    inject: async () => {
      await ask(port, 'CONFIG', 'SET', 'maxmemory', 1)
    },
    heal: async () => {
      await ask(port, 'CONFIG', 'SET', 'maxmemory', 0)
    },
  }
}

const SLOW_KEYS = 700

/** Loading takes 1 ms per key. */
const SLOW_LOADING: readonly string[] = [
  '--key-load-delay',
  '1000',
  '--loading-process-events-interval-bytes',
  '1024',
]

function load(server: RedisServer): Course {
  let started: Promise<void> | undefined
  return {
    async inject() {
      await ask(
        server.port,
        'EVAL',
        "for i = 1, ARGV[1] do redis.call('SET', 'slidegate:' .. i, i, 'PX', 600000) end",
        0,
        SLOW_KEYS,
      )
      await ask(server.port, 'SAVE')
      await server.kill()
      started = server.start()
    },
    heal: async () => started,
  }
}

function busy({ port }: RedisServer): Course {
  const endless = new Redis(port, { lazyConnect: true, retryStrategy: () => null })
  endless.on('error', () => {})
  let killed: Promise<unknown> | undefined
  return {
    async inject() {
      await endless.connect()
      killed = endless.eval('while true do end', 0).catch(() => {})
      await until('the server is busy', async () => {
        return ask(port, 'PING').then(
          () => false,
          (error: Error) => error.message.startsWith('BUSY'),
        )
      })
    },
    async heal() {
      await ask(port, 'SCRIPT', 'KILL')
      await killed
      endless.disconnect()
    },
  }
}

/** Starts a new server for each fault. */
function onServer(course: (server: RedisServer) => Course, settings: readonly string[] = []) {
  return async (): Promise<Scene> => {
    const server = await startRedis(settings)
    return { target: { port: server.port }, ...course(server), end: () => server.stop() }
  }
}

/** Writes survive a crash of the process, though not of the machine. Waiting for the disk would be another fault. */
const APPENDED = ['--appendonly', 'yes', '--appendfsync', 'no']

export const SERVER_FAULTS: readonly Fault[] = [
  {
    name: 'kill',
    title: 'killed, then restarted empty',
    on: 'server',
    isFelt: 'surely',
    keepsData: false,
    lastsMs: 600,
    setUp: onServer(restart),
  },
  {
    name: 'kill-kept',
    title: 'killed, then restarted with its data (`appendonly`)',
    on: 'server',
    isFelt: 'surely',
    keepsData: true,
    lastsMs: 600,
    setUp: onServer(restart, APPENDED),
  },
  {
    name: 'freeze',
    title: 'hangs (`SIGSTOP`), then resumes',
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
    title: 'made a replica (`READONLY`), then a primary again',
    on: 'server',
    isFelt: 'surely',
    keepsData: true,
    lastsMs: 600,
    setUp: onServer(demote),
  },
  {
    name: 'full',
    title: '`maxmemory` reached (`noeviction`), then memory freed',
    on: 'server',
    isFelt: 'perhaps',
    keepsData: true,
    lastsMs: 600,
    setUp: onServer(fill, ['--maxmemory-policy', 'noeviction']),
  },
  {
    name: 'loading',
    title: 'restarted, and `LOADING`',
    on: 'server',
    isFelt: 'surely',
    keepsData: false,
    lastsMs: 300,
    setUp: onServer(load, SLOW_LOADING),
  },
  {
    name: 'busy',
    title: '`BUSY` with another script, until `SCRIPT KILL`',
    on: 'server',
    isFelt: 'surely',
    keepsData: true,
    lastsMs: 600,
    setUp: onServer(busy, ['--busy-reply-threshold', '10']),
  },
]
