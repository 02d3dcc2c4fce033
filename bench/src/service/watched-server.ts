import { pino } from 'pino'
import { loadConfig } from '../../../packages/server/src/config/load.ts'
import { startService } from '../../../packages/server/src/service/running.ts'
import { serve } from '../workers.ts'
import { configFile, portIn } from './config-file.ts'
import type { ToWatched, WatchedPorts } from './messages.ts'

// The framework reads NODE_ENV when it loads.
process.env.NODE_ENV = 'production'

// The same service twice in one process, with and without metrics.
serve<ToWatched, WatchedPorts | number>(async (message) => {
  if (message === 'cpu seconds') {
    const { user, system } = process.cpuUsage()
    return (user + system) / 1e6
  }
  const start = async (isWatched: boolean) => {
    const loaded = loadConfig(configFile(message.store))
    const running = await startService({
      ...{ loaded, log: pino({ level: 'silent' }), environment: {} },
      isWatched,
    })
    return portIn(running.httpUrl)
  }
  return { watched: await start(true), unwatched: await start(false) }
})
