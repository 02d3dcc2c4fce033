// Creates a connection and never uses it: `node idle-store.js <port> <node-redis | ioredis> <ms>`.
import { OwnConnection } from '../../dist/stores/redis/connect.js'
import { loadIoredis, loadNodeRedis } from '../../dist/stores/redis/create-client.js'

const [, , port, kind, ms] = process.argv
const connection = new OwnConnection(
  { url: `redis://127.0.0.1:${port}` },
  kind === 'ioredis' ? loadIoredis : loadNodeRedis,
)
// Something else keeps the process alive for a while.
await new Promise((resolve) => setTimeout(resolve, Number(ms)))
process.stdout.write(`${connection.server}\n`)
