// A sample log for the simulator.

const START_MS = Date.UTC(2026, 0, 5, 9, 0)
const LENGTH_S = 2 * 3600
const VISITORS = 400

/**
 * Returns two hours of an access log. The result is always the same.
 *
 * The callers are visitors, an office behind one address, a scraper, and a client that sends bursts around minute
 * boundaries.
 */
export function sampleLog(): Blob {
  const random = randomNumbers(7)
  const requests: { second: number; caller: string; path: string }[] = []
  const add = (second: number, caller: string, path: string): void => {
    if (second >= 0 && second < LENGTH_S) requests.push({ second: Math.floor(second), caller, path })
  }
  for (let visitor = 0; visitor < VISITORS; visitor++) {
    const caller = `198.51.100.${visitor % 250}${visitor < 250 ? '' : '.example.net'}`
    for (let visit = random() * LENGTH_S; visit < LENGTH_S; visit += 60 + random() * 2400) {
      const pages = 1 + Math.floor(random() ** 2 * 6)
      for (let page = 0; page < pages; page++) {
        const at = visit + page * (4 + random() * 20)
        for (let file = 0; file < 8; file++) add(at + random() * 2, caller, `/pages/${page}/${file}`)
      }
    }
  }
  for (let second = 0; second < LENGTH_S; second++) {
    // The office is busiest after an hour.
    const busy = 1.6 * Math.sin((Math.PI * second) / LENGTH_S)
    if (random() < busy) add(second, '192.0.2.10', '/api/orders')
    if (random() < busy / 3) add(second, '192.0.2.10', '/api/customers')
    for (let i = 0; i < 3; i++)
      if (second > 2400 && second < 5400) add(second, '203.0.113.66', `/items/${second * 3 + i}`)
  }
  for (let minute = 10; minute < 120; minute += 10) {
    for (let i = 0; i < 100; i++) add(minute * 60 - 1, '203.0.113.7', '/api/tickets')
    for (let i = 0; i < 100; i++) add(minute * 60, '203.0.113.7', '/api/tickets')
  }
  requests.sort((a, b) => a.second - b.second)
  const lines = requests.map(
    ({ second, caller, path }) => `${caller} - - [${timeOf(second)}] "GET ${path} HTTP/1.1" 200 512\n`,
  )
  return new Blob([lines.join('')])
}

/** Formats a time: `05/Jan/2026:09:00:00 +0000`. */
function timeOf(second: number): string {
  return `05/Jan/2026:${new Date(START_MS + second * 1000).toISOString().slice(11, 19)} +0000`
}

/** Returns a function that returns the numbers of a fixed sequence in [0, 1). */
function randomNumbers(seed: number): () => number {
  let state = seed
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 32
  }
}
