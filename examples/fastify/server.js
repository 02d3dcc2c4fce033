// @ts-check
// Allows five requests per ten seconds for each client address.
//
//   node examples/fastify/server.js
//
// Listens on loopback, on PORT or a free port, and prints its URL.
import { fastify } from 'fastify'
import { slidingWindow } from 'slidegate'
import { rateLimit } from 'slidegate/fastify'

const app = fastify()

app.register(rateLimit({ limits: [slidingWindow({ limit: 5, window: '10s' })] }))

app.get('/', async () => 'hello\n')

console.log(await app.listen({ host: '127.0.0.1', port: Number(process.env.PORT ?? 0) }))
