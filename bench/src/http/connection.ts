import { connect, type Socket } from 'node:net'

/** Called with the status and the time since the request was sent. */
export type OnAnswer = (status: number, ms: number) => void

const LENGTH = /\r\ncontent-length: *(\d+)/i

/**
 * A keep-alive connection with one request at a time.
 *
 * It does as little as possible, to leave CPU time to the server. Requests are prepared as bytes, and only the status and length
 * of a response are read.
 */
export class Connection {
  readonly #socket: Socket
  #onAnswer: OnAnswer = () => {}
  #sentAt = 0
  #isWaiting = false
  #arrived = ''

  private constructor(socket: Socket) {
    this.#socket = socket
    socket.setNoDelay(true)
    socket.setEncoding('latin1')
    socket.on('data', (text: string) => this.#onData(text))
    socket.on('close', () => {
      if (this.#isWaiting) throw new Error('The server closed the connection without a response')
    })
  }

  static async open(port: number): Promise<Connection> {
    const socket = connect(port, '127.0.0.1')
    await new Promise<void>((resolve, reject) => socket.once('connect', resolve).once('error', reject))
    socket.on('error', (error) => {
      throw error
    })
    return new Connection(socket)
  }

  send(request: Buffer, onAnswer: OnAnswer): void {
    this.#onAnswer = onAnswer
    this.#isWaiting = true
    this.#sentAt = performance.now()
    this.#socket.write(request)
  }

  #onData(text: string): void {
    const arrived = this.#arrived === '' ? text : this.#arrived + text
    const headEnd = arrived.indexOf('\r\n\r\n')
    const length = headEnd < 0 ? undefined : LENGTH.exec(arrived)?.[1]
    if (headEnd >= 0 && length === undefined)
      throw new Error(`The response has no Content-Length:\n${arrived}`)
    if (length === undefined || arrived.length < headEnd + 4 + Number(length)) {
      this.#arrived = arrived
      return
    }
    this.#arrived = ''
    this.#isWaiting = false
    this.#onAnswer(Number(arrived.slice(9, 12)), performance.now() - this.#sentAt)
  }
}

/** Returns a GET as bytes. A header names the user, as an API key would. */
export function requestOf(user: string): Buffer {
  return Buffer.from(`GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-User: ${user}\r\n\r\n`)
}

/** Returns a POST of JSON as bytes. */
export function postOf(path: string, body: unknown): Buffer {
  const json = JSON.stringify(body)
  const head = [
    'Host: 127.0.0.1',
    'Content-Type: application/json',
    `Content-Length: ${Buffer.byteLength(json)}`,
  ]
  return Buffer.from(`POST ${path} HTTP/1.1\r\n${head.join('\r\n')}\r\n\r\n${json}`)
}
