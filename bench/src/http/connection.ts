import { connect, type Socket } from 'node:net'

/** A response has arrived, this long after its request left. */
export type OnAnswer = (status: number, ms: number) => void

const LENGTH = /\r\ncontent-length: *(\d+)/i

/**
 * One keep-alive connection with one request at a time. It does the least that a client can, so that on few
 * cores the server is what is measured: requests are bytes made beforehand, and of a response only the status
 * and the length are read.
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
      if (this.#isWaiting) throw new Error('the server has closed a connection instead of answering')
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
    if (headEnd >= 0 && length === undefined) throw new Error(`a response without a length:\n${arrived}`)
    if (length === undefined || arrived.length < headEnd + 4 + Number(length)) {
      this.#arrived = arrived
      return
    }
    this.#arrived = ''
    this.#isWaiting = false
    this.#onAnswer(Number(arrived.slice(9, 12)), performance.now() - this.#sentAt)
  }
}

/** A request as bytes. Who asks stands in a header, as an API key would. */
export function requestOf(user: string): Buffer {
  return Buffer.from(`GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-User: ${user}\r\n\r\n`)
}

/** The same as a POST of JSON. */
export function postOf(path: string, body: unknown): Buffer {
  const json = JSON.stringify(body)
  const head = [
    'Host: 127.0.0.1',
    'Content-Type: application/json',
    `Content-Length: ${Buffer.byteLength(json)}`,
  ]
  return Buffer.from(`POST ${path} HTTP/1.1\r\n${head.join('\r\n')}\r\n\r\n${json}`)
}
