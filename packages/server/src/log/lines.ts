import { createReadStream } from 'node:fs'
import { pipeline, Readable } from 'node:stream'
import { StringDecoder } from 'node:string_decoder'
import { createGunzip } from 'node:zlib'
import { messageOf } from '../errors.ts'

/** A longer line is cut to one character more than this, by which it is known. */
export const MAX_LINE_CHARS: number = 1024 * 1024

const CHUNK_BYTES = 256 * 1024

/** The lines of a file, or of the standard input for `-`, in portions; gzip is recognised by its first bytes. */
export async function* readLines(path: string): AsyncGenerator<string[]> {
  const source = path === '-' ? process.stdin : createReadStream(path, { highWaterMark: CHUNK_BYTES })
  try {
    yield* splitLines(gunzipped(source))
  } catch (error) {
    const name = path === '-' ? 'the standard input' : path
    const what = isZlibError(error) ? 'damaged gzip, ' : ''
    throw new Error(`cannot read ${name}: ${what}${messageOf(error)}`, { cause: error })
  } finally {
    source.destroy()
  }
}

/** Decodes UTF-8 and splits at line feeds, holding no more than a chunk and a line. */
export async function* splitLines(chunks: AsyncIterable<Buffer>): AsyncGenerator<string[]> {
  const decoder = new StringDecoder('utf8')
  let rest = ''
  let isFirst = true
  for await (const chunk of chunks) {
    const lines = decoder.write(chunk).split('\n')
    if (isFirst) lines[0] = lines[0]!.replace(/^\uFEFF/, '')
    isFirst = false
    lines[0] = cut(rest + lines[0])
    rest = cut(lines.pop()!)
    yield lines.map(withoutReturn)
  }
  rest += decoder.end()
  if (rest !== '') yield [withoutReturn(rest)]
}

function isZlibError(error: unknown): boolean {
  return error instanceof Error && 'code' in error && `${error.code}`.startsWith('Z_')
}

function cut(line: string): string {
  return line.length > MAX_LINE_CHARS ? line.slice(0, MAX_LINE_CHARS + 1) : line
}

function withoutReturn(line: string): string {
  return line.endsWith('\r') ? line.slice(0, -1) : line
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
  // An error of the source reaches whoever reads: pipeline destroys the gunzip with it.
  yield* isGzip ? pipeline(Readable.from(whole), createGunzip({ chunkSize: CHUNK_BYTES }), () => {}) : whole
}

async function* prepended(head: Buffer, rest: AsyncIterator<Buffer>): AsyncGenerator<Buffer> {
  yield head
  for (let next = await rest.next(); !next.done; next = await rest.next()) yield next.value
}
