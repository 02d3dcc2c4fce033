/** Counts complete requests or replies in one direction of a Redis connection. Chunks may split frames anywhere. */
export class RespFrames {
  count = 0
  #rest: Buffer = Buffer.alloc(0)

  feed(chunk: Buffer): void {
    const buffer = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk])
    let at = 0
    for (let end = endOfFrame(buffer, at); end !== undefined; end = endOfFrame(buffer, at)) {
      // Push messages aren't replies to a request.
      if (buffer[at] !== '>'.charCodeAt(0)) this.count++
      at = end
    }
    this.#rest = buffer.subarray(at)
  }
}

/** Returns where a frame ends, or `undefined` if it is incomplete. */
function endOfFrame(buffer: Buffer, start: number): number | undefined {
  const eol = buffer.indexOf('\r\n', start)
  if (eol < 0) return undefined
  const next = eol + 2
  const size = Math.max(Number(buffer.toString('latin1', start + 1, eol)), -1)
  switch (String.fromCharCode(buffer[start]!)) {
    case '$':
    case '=':
    case '!': {
      const end = size < 0 ? next : next + size + 2
      return end <= buffer.length ? end : undefined
    }
    case '*':
    case '~':
    case '>':
      return endOfFrames(buffer, next, size)
    case '%':
      return endOfFrames(buffer, next, 2 * size)
    case '|':
      return endOfFrames(buffer, next, 2 * size + 1)
    default:
      return next
  }
}

function endOfFrames(buffer: Buffer, start: number, count: number): number | undefined {
  let end: number | undefined = start
  for (let i = 0; i < count && end !== undefined; i++) end = endOfFrame(buffer, end)
  return end
}
