import { pino } from 'pino'
import { loadConfig } from '../../../packages/server/src/config/load.ts'
import { startService } from '../../../packages/server/src/service/running.ts'
import { serve } from '../workers.ts'
import { configFile, portIn } from './config-file.ts'
import type { ToWatched, WatchedPorts } from './told.ts'

// Before the framework is loaded.
process.env.NODE_ENV = 'production'

// The same service twice in one process: one that counts what it decides, and one that does not.
serve<ToWatched, WatchedPorts | number>(async (told) => {
  if (told === 'cpu seconds') {
    const { user, system } = process.cpuUsage()
    return (user + system) / 1e6
  }
  const start = async (isWatched: boolean) => {
    const loaded = loadConfig(configFile(told.store))
    const running = await startService({
      ...{ loaded, log: pino({ level: 'silent' }), environment: {} },
      isWatched,
    })
    return portIn(running.httpUrl)
  }
  return { watched: await start(true), unwatched: await start(false) }
})
