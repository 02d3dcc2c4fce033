// Appends lines to a file, rotates it, and reads the newest lines.

import { type FileHandle, open, rename, rm, stat } from 'node:fs/promises'

interface LineFileOptions {
  /** Maximum size. A full file is renamed to `<file>.1`, and a new file is started. Default: no maximum. */
  readonly maxBytes?: number | undefined
}

/** Maximum age of a rotation lock. The process that created an older one must have died. */
const STALE_MS = 10_000

const CHUNK_BYTES = 256 * 2 ** 10

const NEWLINE = 0x0a

/**
 * A file that several processes can append lines to.
 *
 * Each batch is appended in a single write, so that lines from different processes don't mix. If another process or
 * logrotate has renamed the file, a new one is created.
 */
export class LineFile {
  readonly path: string
  readonly #maxBytes: number
  #handle: FileHandle | undefined

  constructor(path: string, { maxBytes = Number.POSITIVE_INFINITY }: LineFileOptions = {}) {
    this.path = path
    this.#maxBytes = maxBytes
  }

  /** The previous, full file. */
  get formerPath(): string {
    return `${this.path}.1`
  }

  /** @param lines without line breaks */
  async append(lines: readonly string[]): Promise<void> {
    const bytes = Buffer.from(`${lines.join('\n')}\n`)
    const handle = await this.#handleFor(bytes.length)
    try {
      const { bytesWritten } = await handle.write(bytes)
      if (bytesWritten < bytes.length)
        throw new Error(`only ${bytesWritten} of ${bytes.length} bytes were written`)
    } catch (error) {
      // Closes the file, so that the next append opens it again and ends the incomplete line.
      await this.close()
      throw error
    }
  }

  async close(): Promise<void> {
    const handle = this.#handle
    this.#handle = undefined
    await handle?.close()
  }

  /** The newest matching lines from this file and the previous one, in chronological order. */
  async newest(count: number, isWanted: (line: string) => boolean): Promise<string[]> {
    const found: string[] = []
    // Opens both files before reading, because they may be rotated at any time.
    const files = [await openIfThere(this.path), await openIfThere(this.formerPath)]
    try {
      const [present, former] = await Promise.all(files.map((file) => file?.stat()))
      if (present !== undefined && present.ino === former?.ino) await files.pop()!.close()
      for (const file of files) {
        if (file === undefined) continue
        for await (const line of linesFromEnd(file)) {
          if (found.length >= count) break
          if (line !== '' && isWanted(line)) found.push(line)
        }
      }
    } finally {
      await Promise.all(files.map((file) => file?.close()))
    }
    return found.reverse()
  }

  async #handleFor(bytes: number): Promise<FileHandle> {
    if (this.#handle !== undefined) {
      const [own, named] = await Promise.all([this.#handle.stat(), stat(this.path).catch(() => undefined)])
      const isThere = named !== undefined && named.ino === own.ino && named.dev === own.dev
      if (isThere && (own.size === 0 || own.size + bytes <= this.#maxBytes)) return this.#handle
      if (isThere) await this.#rotate(own.ino)
      await this.close()
    }
    const handle = await open(this.path, 'a+', 0o640)
    this.#handle = handle
    await endLastLine(handle)
    return handle
  }

  /** Renames the full file. A lock keeps other processes from renaming the new file at the same time. */
  async #rotate(inode: number): Promise<void> {
    const lock = `${this.path}.lock`
    try {
      await (await open(lock, 'wx')).close()
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
      const held = await stat(lock).catch(() => undefined)
      if (held !== undefined && Date.now() - held.mtimeMs > STALE_MS) await rm(lock, { force: true })
      return
    }
    try {
      // Another process may have renamed the file but not created the new one yet.
      const named = await stat(this.path).catch(() => undefined)
      if (named?.ino === inode) await rename(this.path, this.formerPath)
    } finally {
      await rm(lock, { force: true })
    }
  }
}

/**
 * Ends a line that a killed process left incomplete.
 *
 * A line that another process is still writing looks the same. Ending it adds an empty line to the file, which
 * `replay` skips.
 */
async function endLastLine(file: FileHandle): Promise<void> {
  const { size } = await file.stat()
  if (size === 0) return
  const { buffer } = await file.read({ buffer: Buffer.alloc(1), position: size - 1 })
  if (buffer[0] !== NEWLINE) await file.write('\n')
}

async function openIfThere(path: string): Promise<FileHandle | undefined> {
  try {
    return await open(path, 'r')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}

/** Yields lines from the end of a file, the last line first. */
async function* linesFromEnd(file: FileHandle): AsyncGenerator<string> {
  let { size: end } = await file.stat()
  let rest: Buffer = Buffer.alloc(0)
  while (end > 0) {
    const start = Math.max(0, end - CHUNK_BYTES)
    const { buffer } = await file.read({ buffer: Buffer.alloc(end - start), position: start })
    const bytes = Buffer.concat([buffer, rest])
    end = start
    // The text before the first line feed may have begun in an earlier chunk.
    const begin = start === 0 ? 0 : bytes.indexOf(NEWLINE) + 1
    rest = bytes.subarray(0, begin)
    const lines = bytes.subarray(begin).toString().split('\n')
    for (const line of lines.reverse()) yield line
  }
}
