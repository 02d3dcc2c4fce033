// Reads a log into columns, by the same rules as `slidegate replay`.

import { type LineOptions, lineParser, type ParseLine, Skipped } from '../../../replay/src/log/parse-line.ts'
import { ReorderBuffer } from '../../../replay/src/log/reorder-buffer.ts'
import { splitLines } from '../../../replay/src/log/split-lines.ts'

/** The requests in a log, grouped by caller and sorted by time. */
export interface Log {
  readonly callers: readonly string[]
  /** The index of each caller's first request. The last item is the number of requests. */
  readonly starts: Uint32Array
  readonly timesMs: Float64Array
  /** The units of each request, or `undefined` if all requests cost 1. */
  readonly costs: Float64Array | undefined
  /** Times of the first and last request. Both are 0 for an empty log. */
  readonly fromMs: number
  readonly toMs: number
  readonly lines: number
  readonly skipped: Skipped
  /** The number of requests that may be out of order, because the buffer was full. */
  readonly releasedEarly: number
  /** Whether the log has more lines than were read. */
  readonly isCut: boolean
  /** The limiters in captured requests. Empty for other logs. */
  readonly limiters: readonly string[]
  /** The limiter whose requests were read. */
  readonly limiter: string | undefined
  /** The fields of the first JSON object. Any of them can identify the caller. */
  readonly fields: readonly string[]
}

export interface ReadOptions extends LineOptions {
  /** The limiter whose captured requests are read. Default: the first limiter in the log. */
  readonly limiter?: string | undefined
}

/** A longer log is truncated. Each request takes about 100 bytes while it is read, and 12 to 20 afterwards. */
const MAX_LINES = 5_000_000

/** Bounds for sorting requests that are out of order. The same as in `slidegate replay`. */
const REORDER = { boundMs: 300_000, capacity: 1_000_000 }

const BATCH = 1024
const MAX_LIMITERS = 1000

/**
 * Reads a log as `slidegate replay` does.
 *
 * @param goOn called regularly with the number of lines read. If it resolves to false, no log is returned
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
    else if (!this.#isWanted(parsed.limiter)) this.#skipped.add(line, 'another limiter', text)
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

/** Returns the indexes of requests, grouped by caller, and the start of each group. */
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

/** The names of fields, including nested ones such as `client.ip`. */
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

/** Yields the bytes of a file in chunks. A gzip file is recognized by its first bytes and unpacked. */
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
    throw new Error('the gzip file is damaged or has several members: unpack it, then load the result', {
      cause: error,
    })
  } finally {
    // The caller may have stopped reading early.
    reader.cancel().catch(() => {})
  }
}

type Numbers = Float64Array | Uint32Array

/** A growing array of numbers. */
export class Column<Kind extends Numbers> {
  #numbers: Kind
  #length = 0

  /** @param numbers the first buffer */
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
