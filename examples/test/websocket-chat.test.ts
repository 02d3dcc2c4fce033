import { once } from 'node:events'
import { expect, it, onTestFinished } from 'vitest'
import { WebSocket } from 'ws'
import { served } from './support/example.ts'

it('messages above the limit are not delivered, and other connections are not affected', async () => {
  const url = await served('websocket-chat')
  expect(await (await fetch(url)).text()).toContain('<title>Chat</title>')

  const [ada, bob] = [await join(url), await join(url)]
  for (let n = 1; n <= 6; n++) ada.say(`ada ${n}`)
  const notice = await ada.heard(({ status }) => status !== undefined)
  bob.say('bob 1')
  await bob.heard(({ text }) => text === 'bob 1')

  expect(notice).toMatchObject({ status: 429, 'violated-policies': ['5-per-10s'] })
  expect(notice.retryAfterMs).toBeGreaterThan(0)
  expect(notice.retryAfterMs).toBeLessThanOrEqual(10_000)
  expect(bob.all.map(({ text }) => text)).toEqual(['ada 1', 'ada 2', 'ada 3', 'ada 4', 'ada 5', 'bob 1'])
})

interface Message {
  readonly text?: string
  readonly status?: number
  readonly retryAfterMs?: number
}

async function join(url: string) {
  const socket = new WebSocket(url.replace('http', 'ws'))
  onTestFinished(() => socket.terminate())
  const all: Message[] = []
  socket.on('message', (data) => all.push(JSON.parse(String(data))))
  await once(socket, 'open')
  return {
    all,
    say: (text: string) => socket.send(text),
    async heard(isMeant: (message: Message) => boolean): Promise<Message> {
      for (;;) {
        const message = all.find(isMeant)
        if (message !== undefined) return message
        await once(socket, 'message')
      }
    },
  }
}
