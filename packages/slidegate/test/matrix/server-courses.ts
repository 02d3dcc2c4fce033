import { Redis } from 'ioredis'
import { ask } from '../support/ask.ts'
import { freePort } from '../support/ports.ts'
import type { RedisServer } from '../support/redis-server.ts'
import { until } from '../support/until.ts'
import type { Course } from './fault.ts'

export function restart(server: RedisServer): Course {
  return { inject: () => server.kill(), heal: () => server.start() }
}

export function freeze(server: RedisServer): Course {
  return {
    inject: async () => server.freeze(),
    heal: async () => server.thaw(),
  }
}

export const PAUSE_MS: number = 700

/** It runs out by itself: what would end it is paused as well. */
export function pause({ port }: RedisServer): Course {
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

/** Again and again, so that some calls meet it. */
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

export function forgetScripts({ port }: RedisServer): Course {
  return repeated(() => ask(port, 'SCRIPT', 'FLUSH').catch(() => {}))
}

export function flush({ port }: RedisServer): Course {
  return {
    inject: async () => {
      await ask(port, 'FLUSHALL')
    },
    heal: async () => {},
  }
}

/** A replica of nobody: it keeps what it has, and refuses to write. */
export function demote({ port }: RedisServer): Course {
  return {
    inject: async () => {
      await ask(port, 'REPLICAOF', '127.0.0.1', await freePort())
    },
    heal: async () => {
      await ask(port, 'REPLICAOF', 'NO', 'ONE')
    },
  }
}

export function fill({ port }: RedisServer): Course {
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

/** Each key takes it a millisecond to load. */
export const SLOW_LOADING: readonly string[] = [
  '--key-load-delay',
  '1000',
  '--loading-process-events-interval-bytes',
  '1024',
]

export function load(server: RedisServer): Course {
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

export function busy({ port }: RedisServer): Course {
  const endless = new Redis(port, { lazyConnect: true, retryStrategy: () => null })
  endless.on('error', () => {})
  let killed: Promise<unknown> | undefined
  return {
    async inject() {
      await endless.connect()
      killed = endless.eval('while true do end', 0).catch(() => {})
      await until('it is busy', async () => {
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
