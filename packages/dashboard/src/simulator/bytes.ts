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
