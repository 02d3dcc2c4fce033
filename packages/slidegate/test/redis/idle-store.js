// Creates a connection and never uses it: `node idle-store.js <port> <node-redis | ioredis> <ms>`.
import { OwnConnection } from '../../src/stores/redis/connect.ts'
import { loadIoredis, loadNodeRedis } from '../../src/stores/redis/create-client.ts'

const [, , port, kind, ms] = process.argv
const connection = new OwnConnection(
  { url: `redis://127.0.0.1:${port}` },
  kind === 'ioredis' ? loadIoredis : loadNodeRedis,
)
// Something else keeps the process alive for a while.
await new Promise((resolve) => setTimeout(resolve, Number(ms)))
process.stdout.write(`${connection.server}\n`)
