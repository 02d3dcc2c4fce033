// @ts-check
// Allows five requests per ten seconds for each client address.
//
//   node examples/express/server.js
//
// Listens on loopback, on PORT or a free port, and prints its URL.
import express from 'express'
import { slidingWindow } from 'slidegate'
import { rateLimit } from 'slidegate/express'

const app = express()

app.use(rateLimit({ limits: [slidingWindow({ limit: 5, window: '10s' })] }))

app.get('/', (_req, res) => {
  res.send('hello\n')
})

const server = app.listen(Number(process.env.PORT ?? 0), '127.0.0.1', (error) => {
  if (error) throw error
  const { port } = /** @type {import('node:net').AddressInfo} */ (server.address())
  console.log(`http://127.0.0.1:${port}`)
})
