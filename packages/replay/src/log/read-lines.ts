// Reads lines from a file or standard input, plain or gzipped.

import { createReadStream } from 'node:fs'
import { pipeline, Readable } from 'node:stream'
import { createGunzip } from 'node:zlib'
import { messageOf } from '../errors.ts'
import { splitLines } from './split-lines.ts'

const CHUNK_BYTES = 256 * 1024

/**
 * Yields batches of lines from a file, or from standard input for `-`. Detects gzip.
 *
 * @param onRead called with the number of bytes read so far
 */
export async function* readLines(
  path: string,
  onRead: (bytes: number) => void = () => {},
): AsyncGenerator<string[]> {
  const source = path === '-' ? process.stdin : createReadStream(path, { highWaterMark: CHUNK_BYTES })
  try {
    for await (const lines of splitLines(gunzipped(source))) {
      yield lines
      onRead(source.bytesRead)
    }
  } catch (error) {
    const name = path === '-' ? 'standard input' : path
    const what = isZlibError(error) ? 'damaged gzip data, ' : ''
    throw new Error(`can't read ${name}: ${what}${messageOf(error)}`, { cause: error })
  } finally {
    source.destroy()
  }
}

function isZlibError(error: unknown): boolean {
  return error instanceof Error && 'code' in error && `${error.code}`.startsWith('Z_')
}

async function* gunzipped(source: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  const chunks = source[Symbol.asyncIterator]()
  let head: Buffer = Buffer.alloc(0)
  while (head.length < 2) {
    const next = await chunks.next()
    if (next.done) break
    head = Buffer.concat([head, next.value])
  }
  const whole = prepended(head, chunks)
  const isGzip = head[0] === 0x1f && head[1] === 0x8b
  // If the source fails, `pipeline` destroys the gunzip stream, so the reader gets the error.
  yield* isGzip ? pipeline(Readable.from(whole), createGunzip({ chunkSize: CHUNK_BYTES }), () => {}) : whole
}

async function* prepended(head: Buffer, rest: AsyncIterator<Buffer>): AsyncGenerator<Buffer> {
  yield head
  for (let next = await rest.next(); !next.done; next = await rest.next()) yield next.value
}
