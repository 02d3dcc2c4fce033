// Reads a log into columns, by the same rules as `slidegate replay`.

import { type LineOptions, lineParser, type ParseLine, Skipped } from '../../../replay/src/log/parse-line.ts'
import { ReorderBuffer } from '../../../replay/src/log/reorder-buffer.ts'
import { splitLines } from '../../../replay/src/log/split-lines.ts'

/** The requests of a log, caller by caller, and those of each in the order of time. */
export interface Log {
  readonly callers: readonly string[]
  /** Where the requests of each caller begin, and at last where those of the last one end. */
  readonly starts: Uint32Array
  readonly timesMs: Float64Array
  /** Units; `undefined` where each takes 1. */
  readonly costs: Float64Array | undefined
  /** When the first and the last request were made; 0 where there are none. */
  readonly fromMs: number
  readonly toMs: number
  readonly lines: number
  readonly skipped: Skipped
  /** Requests decided before all that might precede them had been read, for want of room. */
  readonly releasedEarly: number
  /** Whether there are more lines than are read. */
  readonly isCut: boolean
  /** Who has decided captured requests; of other logs nobody is known. */
  readonly limiters: readonly string[]
  /** Whose of them are here. */
  readonly limiter: string | undefined
  /** Of the first line that is a JSON object: by what callers may be told apart. */
  readonly fields: readonly string[]
}

export interface ReadOptions extends LineOptions {
  /** Whose captured requests are read. Default: those of the first that occurs. */
  readonly limiter?: string | undefined
}

/** Beyond it a log is cut, for all its requests are held: some 100 bytes each while it is read, 12 to 20 afterwards. */
const MAX_LINES = 5_000_000

/** That of `slidegate replay`. */
const REORDER = { boundMs: 300_000, capacity: 1_000_000 }

const BATCH = 1024
const MAX_LIMITERS = 1000

/**
 * Reads a log as `slidegate replay` does.
 *
 * @param goOn told now and then how many lines were read; what it answers ends the reading, without a log
 */
export async function readLog(
  chunks: AsyncIterable<Uint8Array>,
  { limiter, ...options }: ReadOptions,
  goOn: (lines: number) => Promise<boolean>,
  maxLines: number = MAX_LINES,
): Promise<Log | undefined> {
  const log = new LogInMaking(lineParser(options), limiter)
  for await (const lines of splitLines(chunks)) {
    for (const line of lines) {
      if (log.lines === maxLines) return log.end(true)
      log.add(line)
    }
    if (!(await goOn(log.lines))) return undefined
  }
  return log.end(false)
}

class LogInMaking {
  lines = 0
  readonly #parse: ParseLine
  readonly #skipped = new Skipped()
  readonly #buffer = new ReorderBuffer(REORDER)
  readonly #places = new Map<string, number>()
  readonly #timesMs = new Column(new Float64Array(1024))
  readonly #by = new Column(new Uint32Array(1024))
  readonly #costs = new Column(new Float64Array(1024))
  #hasCosts = false
  #fields: readonly string[] | undefined
  readonly #limiters = new Set<string>()
  #limiter: string | undefined

  constructor(parse: ParseLine, limiter: string | undefined) {
    this.#parse = parse
    this.#limiter = limiter
  }

  add(text: string): void {
    const line = ++this.lines
    const parsed = this.#parse(text)
    this.#fields ??= fieldsOf(text)
    if ('bad' in parsed) this.#skipped.add(line, parsed.bad, text)
    else if (!this.#isWanted(parsed.limiter)) this.#skipped.add(line, 'of another limiter', text)
    else if (!this.#buffer.push({ ...parsed, line })) this.#skipped.add(line, 'too late', text)
    if (this.#buffer.released >= BATCH) this.#keepReleased()
  }

  #isWanted(limiter: string | undefined): boolean {
    if (limiter === undefined) return true
    if (this.#limiters.size < MAX_LIMITERS) this.#limiters.add(limiter)
    this.#limiter ??= limiter
    return limiter === this.#limiter
  }

  end(isCut: boolean): Log {
    this.#buffer.drain()
    this.#keepReleased()
    const timesMs = this.#timesMs.take()
    const by = this.#by.take()
    const { starts, order } = grouped(by, this.#places.size)
    return {
      callers: Array.from(this.#places.keys()),
      starts,
      timesMs: timesMs.map((_, i) => timesMs[order[i]!]!),
      costs: this.#hasCosts ? this.#costs.take().map((_, i, costs) => costs[order[i]!]!) : undefined,
      fromMs: timesMs[0] ?? 0,
      toMs: timesMs.at(-1) ?? 0,
      lines: this.lines,
      skipped: this.#skipped,
      releasedEarly: this.#buffer.releasedEarly,
      isCut,
      limiters: Array.from(this.#limiters).sort(),
      limiter: this.#limiter,
      fields: this.#fields ?? [],
    }
  }

  #keepReleased(): void {
    for (const { timeMs, key, cost = 1 } of this.#buffer.take()) {
      let place = this.#places.get(key)
      if (place === undefined) {
        place = this.#places.size
        this.#places.set(key, place)
      }
      this.#timesMs.push(timeMs)
      this.#by.push(place)
      this.#costs.push(cost)
      this.#hasCosts ||= cost !== 1
    }
  }
}

/** The places of the requests, caller by caller, and where each caller's begin. */
function grouped(by: Uint32Array, callers: number): { starts: Uint32Array; order: Uint32Array } {
  const starts = new Uint32Array(callers + 1)
  for (const caller of by) starts[caller + 1]!++
  for (let caller = 0; caller < callers; caller++) starts[caller + 1]! += starts[caller]!
  const next = starts.slice()
  const order = new Uint32Array(by.length)
  for (let i = 0; i < by.length; i++) order[next[by[i]!]!++] = i
  return { starts, order }
}

const MAX_FIELDS = 50

/** Those of objects within, too: `client.ip`. */
function fieldsOf(text: string): readonly string[] | undefined {
  if (!/^\s*\{/.test(text)) return undefined
  try {
    const names = Object.entries(JSON.parse(text)).flatMap(([name, value]) =>
      typeof value === 'object' && value !== null
        ? Object.keys(value).map((inner) => `${name}.${inner}`)
        : name,
    )
    return names.slice(0, MAX_FIELDS)
  } catch {
    return undefined
  }
}

/** The bytes of a file in portions; gzip is recognised by its first bytes. */
export async function* bytesOf(
  file: Blob,
  onRead: (bytes: number) => void,
): AsyncGenerator<Uint8Array, void, undefined> {
  const head = new Uint8Array(await file.slice(0, 2).arrayBuffer())
  const isGzip = head[0] === 0x1f && head[1] === 0x8b
  let bytes = 0
  const counted = new TransformStream<Uint8Array<ArrayBuffer>, Uint8Array<ArrayBuffer>>({
    transform(chunk, controller) {
      bytes += chunk.length
      onRead(bytes)
      controller.enqueue(chunk)
    },
  })
  const read = file.stream().pipeThrough(counted)
  const reader = (isGzip ? read.pipeThrough(new DecompressionStream('gzip')) : read).getReader()
  try {
    for (let next = await reader.read(); !next.done; next = await reader.read()) yield next.value
  } catch (error) {
    if (!isGzip) throw error
    throw new Error('the gzip is damaged, or made of several: unpack it, and load what comes out', {
      cause: error,
    })
  } finally {
    // Whoever has read enough leaves the rest.
    reader.cancel().catch(() => {})
  }
}

type Numbers = Float64Array | Uint32Array

/** Numbers of which it is not known how many will come. */
export class Column<Kind extends Numbers> {
  #numbers: Kind
  #length = 0

  /** @param numbers what it begins with room for */
  constructor(numbers: Kind) {
    this.#numbers = numbers
  }

  push(number: number): void {
    if (this.#length === this.#numbers.length) this.#grow()
    this.#numbers[this.#length++] = number
  }

  take(): Kind {
    return this.#numbers.subarray(0, this.#length) as Kind
  }

  #grow(): void {
    const grown = new (this.#numbers.constructor as new (length: number) => Kind)(2 * this.#numbers.length)
    grown.set(this.#numbers)
    this.#numbers = grown
  }
}
