// @ts-check
// A chat that allows five messages per ten seconds for each connection. Further messages aren't delivered, and the sender is
// notified.
//
//   node examples/websocket-chat/server.js
//
// Open the printed URL in two windows.
import { readFile } from 'node:fs/promises'
import { slidingWindow } from 'slidegate'
import { rateLimit } from 'slidegate/ws'
import { WebSocket, WebSocketServer } from 'ws'
import { listen } from '../support/listen.js'

const page = await readFile(new URL('index.html', import.meta.url))

const { server, url } = await listen((_req, res) => {
  res.writeHead(200, { 'Content-Type': 'text/html; charset=utf-8' }).end(page)
})

const chat = new WebSocketServer({ server, maxPayload: 1024 })
const limit = rateLimit({ limits: [slidingWindow({ limit: 5, window: '10s' })] })

chat.on('connection', (socket, request) => {
  socket.on(
    'message',
    limit(socket, request, (data) => broadcast(String(data))),
  )
})

/** @param {string} text */
function broadcast(text) {
  for (const client of chat.clients) {
    if (client.readyState === WebSocket.OPEN) client.send(JSON.stringify({ text }))
  }
}

console.log(url)
