// tier: integration
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { slidingWindow } from 'slidegate'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { startTarget, type Target } from '../src/demo/target.ts'

// Limits on what other programs can do to the demo's listener.

let target: Target
beforeEach(async () => {
  target = await startTarget(slidingWindow({ limit: 5, window: '1h' }))
})
afterEach(() => target.close())

async function dial(): Promise<Socket> {
  const socket = connect(Number(new URL(target.url).port), '127.0.0.1')
  socket.on('error', () => {})
  await once(socket, 'connect')
  return socket
}

/** The whole response, until the server closes the connection. */
async function answerTo(...pieces: string[]): Promise<string> {
  const socket = await dial()
  let answer = ''
  socket.on('data', (chunk) => {
    answer += chunk
  })
  for (const piece of pieces) socket.write(piece)
  await once(socket, 'close')
  return answer
}

const HEAD = 'GET / HTTP/1.1\r\nHost: demo\r\n'

it('the demo server rejects headers above 8 KiB', async () => {
  expect(await answerTo(`${HEAD}A: ${'a'.repeat(8000)}\r\nConnection: close\r\n\r\n`)).toMatch(
    /^HTTP\/1.1 200/,
  )
  expect(await answerTo(`${HEAD}A: ${'a'.repeat(8192)}\r\n\r\n`)).toMatch(/^HTTP\/1.1 431/)
})

it('the demo server never reads a body', async () => {
  expect(await answerTo(`${HEAD}Content-Length: 9000000\r\n\r\n`, 'x')).toMatch(/^HTTP\/1.1 413/)
  expect(await answerTo(`${HEAD}Transfer-Encoding: chunked\r\n\r\n`, '1\r\nx\r\n')).toMatch(/^HTTP\/1.1 413/)
})

it('the demo server waits at most two seconds for headers', async () => {
  const startMs = performance.now()
  expect(await answerTo(HEAD)).toMatch(/^HTTP\/1.1 408/)
  expect(performance.now() - startMs).toBeGreaterThan(1900)
})

it('the demo server accepts 64 connections and drops further ones', async () => {
  const sockets: Socket[] = []
  for (let i = 0; i < 64; i++) sockets.push(await dial())
  const dropped = await dial()
  await once(dropped, 'close')
  const states = sockets.map(({ destroyed }) => destroyed)
  for (const socket of sockets) socket.destroy()
  expect(states).not.toContain(true)
})

it('the demo server answers and records 1,000 requests, and rejects further ones', async () => {
  const answers = (await answerTo(`${HEAD}\r\n`.repeat(1001))).match(/HTTP\/1.1 \d+/g)
  expect(answers).toHaveLength(1001)
  expect(answers!.slice(0, -1)).not.toContain('HTTP/1.1 503')
  expect(answers!.at(-1)).toBe('HTTP/1.1 503')
  expect(target.visits).toHaveLength(1000)
})
