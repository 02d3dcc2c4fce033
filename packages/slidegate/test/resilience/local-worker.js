// Creates limiters in a worker of `node:cluster`: `node local-worker.js <options as JSON> <role>`.
import cluster from 'node:cluster'
import { createLimiter, memoryStore, slidingWindow } from 'slidegate'
import { redisStore } from 'slidegate/redis'

const [options = '{}', where] = process.argv.slice(2)
if (cluster.isPrimary && where === 'worker') {
  cluster.fork()
} else {
  const { onMemory, ...given } = JSON.parse(options)
  const store = onMemory ? memoryStore() : redisStore({ command: () => Promise.reject(new Error('down')) })
  for (const name of ['a', 'b'])
    createLimiter({ name, limits: [slidingWindow({ limit: 1, window: '1h' })], store, ...given })
  cluster.worker?.disconnect()
}
