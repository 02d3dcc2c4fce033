import { once } from 'node:events'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'

/** A server that greets clients like Redis, and answers scripts with given bytes. */
export interface LyingRedis {
  readonly port: number
  /** Sets the answer to scripts. With `areLast`, the connection is closed after it. */
  answer(bytes: Buffer, areLast: boolean): void
  stop(): Promise<void>
}

const HELLO = [
  ...[
    '%7',
    '$6',
    'server',
    '$5',
    'redis',
    '$7',
    'version',
    '$5',
    '7.4.0',
    '$5',
    'proto',
    ':3',
    '$2',
    'id',
    ':1',
  ],
  ...['$4', 'mode', '$10', 'standalone', '$4', 'role', '$6', 'master', '$7', 'modules', '*0'],
]
const INFO = '# Server\r\nredis_version:7.4.0\r\nredis_mode:standalone\r\nloading:0\r\n'

const GREETINGS: Readonly<Record<string, string>> = {
  HELLO: `${HELLO.join('\r\n')}\r\n`,
  INFO: `$${INFO.length}\r\n${INFO}\r\n`,
  PING: '+PONG\r\n',
}

export async function startLyingRedis(): Promise<LyingRedis> {
  let bytes = Buffer.alloc(0)
  let areLast = false
  const sockets = new Set<Socket>()
  const server: Server = createServer((socket) => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
    socket.on('error', () => {})
    let rest = ''
    socket.on('data', (chunk) => {
      rest += chunk.toString('latin1')
      for (let command = firstOf(rest); command !== undefined; command = firstOf(rest)) {
        rest = rest.slice(command.length)
        if (!/^EVAL/i.test(command.name)) socket.write(GREETINGS[command.name.toUpperCase()] ?? '+OK\r\n')
        else if (areLast) socket.end(bytes)
        else socket.write(bytes)
      }
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    answer(given, last) {
      bytes = Buffer.from(given)
      areLast = last
    },
    async stop() {
      for (const socket of sockets) socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}

/** Returns the name and length of the first command, if it is complete. */
function firstOf(text: string): { readonly name: string; readonly length: number } | undefined {
  const head = /^\*(\d+)\r\n/.exec(text)
  if (head === null) return undefined
  let at = head[0].length
  let name = ''
  for (let word = 0; word < Number(head[1]); word++) {
    const end = text.indexOf('\r\n', at)
    if (end < 0) return undefined
    const start = end + 2
    const length = Number(text.slice(at + 1, end))
    if (text.length < start + length + 2) return undefined
    if (word === 0) name = text.slice(start, start + length)
    at = start + length + 2
  }
  return { name, length: at }
}
