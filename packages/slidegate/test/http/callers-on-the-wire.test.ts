import { mkdtemp, rm } from 'node:fs/promises'
import { createServer, type OutgoingHttpHeaders, type RequestOptions, request } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { rateLimit } from '../../src/adapters/node.ts'
import { type ClientAddressOptions, clientAddress, UNKNOWN_ADDRESS } from '../../src/http/index.ts'
import type { NodeRequest, NodeResponse } from '../../src/http/node.ts'
import { slidingWindow } from '../../src/index.ts'

/** A server of `node:http` itself that answers with the caller's key, 429 from the second request of it on. */
async function serve(
  options: ClientAddressOptions,
  at: { host: string } | { path: string } = { host: '127.0.0.1' },
) {
  const keyOf = clientAddress(options)
  const limit = rateLimit({
    limits: [slidingWindow({ limit: 1, window: '1h' })],
    key: (req) => keyOf(req),
    onDenied: (_, req, res) => answer(req, res, 429),
  })
  const answer = (req: NodeRequest, res: NodeResponse, status: number) => {
    res.statusCode = status
    res.end(keyOf(req))
  }
  const server = createServer((req, res) => limit(req, res, () => answer(req, res, 200)))
  await new Promise<void>((resolve) => server.listen('path' in at ? at : { port: 0, ...at }, resolve))
  onTestFinished(async () => {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  })
  return server
}

type Served = Awaited<ReturnType<typeof serve>>

/** Asks from an address of this machine; headers may stand there several times. */
async function ask(
  server: Served,
  headers: OutgoingHttpHeaders | readonly string[] = {},
  options: RequestOptions = {},
): Promise<string> {
  const address = server.address() as AddressInfo | string
  const to = typeof address === 'string' ? { socketPath: address } : { host: '127.0.0.1', port: address.port }
  return new Promise((resolve, reject) => {
    const sent = request({ ...to, agent: false, headers, ...options }, async (response) => {
      let body = ''
      for await (const chunk of response) body += chunk
      resolve(`${response.statusCode} ${body}`)
    })
    sent.on('error', reject).end()
  })
}

/** Sends bytes as they are, and resolves to the first line and the body. */
async function send(server: Served, bytes: string): Promise<string> {
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1')
  socket.end(bytes.replaceAll('\n', '\r\n'), 'latin1')
  let answer = ''
  for await (const chunk of socket.setEncoding('latin1')) answer += chunk
  return `${answer.split(' ')[1]} ${answer.split('\r\n\r\n')[1] ?? ''}`
}

describe('CVE-2026-30827: IPv4-mapped addresses', () => {
  it('a caller by IPv4 is known as such where the server listens on IPv6 too, and others are others', async () => {
    const server = await serve({ trust: 0 }, { host: '::' })
    const from = (localAddress: string) => ask(server, {}, { localAddress })
    expect([await from('127.0.0.1'), await from('127.0.0.2'), await from('127.0.0.1')]).toEqual([
      '200 127.0.0.1',
      '200 127.0.0.2',
      '429 127.0.0.1',
    ])
  })

  it('a proxy by IPv4 is trusted there, and callers that it names so are who they are', async () => {
    const server = await serve({ trust: ['127.0.0.0/8'] }, { host: '::' })
    const named = (address: string) => ask(server, { 'X-Forwarded-For': address })
    expect([
      await named('::ffff:192.0.2.1'),
      await named('192.0.2.1'),
      await named('::FFFF:c000:0202'),
    ]).toEqual(['200 192.0.2.1', '429 192.0.2.1', '200 192.0.2.2'])
  })
})

describe('CVE-2026-45364: IPv6 rotation and alternate spellings', () => {
  it.each([
    ['x-forwarded-for', (address: string) => address],
    ['forwarded', (address: string) => `for="[${address}]"`],
    ['cf-connecting-ip', (address: string) => address],
  ] as const)('in %s', async (header, written) => {
    const server = await serve({ trust: 1, header })
    const spellings = [
      '2001:db8:0:1::1',
      '2001:DB8:0:1::1',
      '2001:0db8:0000:0001:0000:0000:0000:0001',
      '2001:db8:0:1::0.0.0.1',
      '2001:db8:0:1:ffff:ffff:ffff:ffff',
    ]
    const answers: string[] = []
    for (const address of spellings) answers.push(await ask(server, { [header]: written(address) }))
    expect(answers).toEqual(
      ['200', '429', '429', '429', '429'].map((status) => `${status} 2001:db8:0:1::/64`),
    )
  })
})

describe('CVE-2026-27700: the leftmost of X-Forwarded-For', () => {
  const spoofed = ['6.6.6.1', '6.6.6.2', '::ffff:6.6.6.3', 'unknown', '10.0.0.1', '"', ',']

  it('is not read, whatever it is', async () => {
    const server = await serve({ trust: ['127.0.0.1', '10.0.0.0/8'] })
    const answers: string[] = []
    for (const first of spoofed) answers.push(await ask(server, { 'X-Forwarded-For': `${first}, 192.0.2.1` }))
    expect(answers).toEqual(spoofed.map((_, i) => `${i === 0 ? 200 : 429} 192.0.2.1`))
  })

  it('nor in a line of its own', async () => {
    const server = await serve({ trust: 1 })
    const lines = (first: string) => ['Host', 'x', 'X-Forwarded-For', first, 'x-forwarded-for', '192.0.2.1']
    const answers: string[] = []
    for (const first of spoofed) answers.push(await ask(server, lines(first)))
    expect(answers).toEqual(spoofed.map((_, i) => `${i === 0 ? 200 : 429} 192.0.2.1`))
  })

  it('nor at all from whoever is no proxy', async () => {
    const server = await serve({ trust: ['127.0.0.1'] })
    const from = (first: string) => ask(server, { 'X-Forwarded-For': first }, { localAddress: '127.0.0.2' })
    expect([await from('6.6.6.1'), await from('6.6.6.2')]).toEqual(['200 127.0.0.2', '429 127.0.0.2'])
  })

  it('nor folded into a line before', async () => {
    const server = await serve({ trust: 1 })
    const bytes = 'GET / HTTP/1.1\nHost: x\nX-Forwarded-For: 6.6.6.1\n , 192.0.2.1\nConnection: close\n\n'
    expect(await send(server, bytes)).toMatch(/^(400 |200 192\.0\.2\.1$)/)
  })
})

describe('CVE-2026-58044: more headers than Node keeps', () => {
  /** What came last is dropped there, unless the server refuses all of it. */
  const crowded = (first: string, more = 1100) =>
    `GET / HTTP/1.1\nHost: x\nConnection: close\n${first}\n${'A:\n'.repeat(more)}X-Forwarded-For: 192.0.2.1\n\n`

  it.each([1, ['127.0.0.0/8']])(
    'what the caller wrote does not stand in for it, with trust %j',
    async (trust) => {
      const server = await serve({ trust })
      const named = (address: string) => send(server, crowded(`X-Forwarded-For: ${address}`))
      expect(await named('6.6.6.1')).toMatch(/^(200 unknown|431 )$/)
      expect(await named('6.6.6.2')).toMatch(/^(429 unknown|431 )$/)
    },
  )

  it('nor does the proxy itself', async () => {
    expect(await send(await serve({ trust: 1 }), crowded('A:'))).toMatch(/^(200 unknown|431 )$/)
  })

  it('nobody is believed where it does not matter', async () => {
    expect(await send(await serve({ trust: 0 }), crowded('A:'))).toMatch(/^(200 127\.0\.0\.1|431 )$/)
    expect(await send(await serve({ trust: 1 }), crowded('A:', 900))).toBe('200 192.0.2.1')
  })
})

describe('headers of platforms', () => {
  it('that were not chosen say nothing', async () => {
    const server = await serve({ trust: 1 })
    for (const header of ['CF-Connecting-IP', 'X-Real-IP', 'X-Azure-SocketIP', 'Forwarded', 'X-Client-IP']) {
      expect(await ask(server, { [header]: '6.6.6.1' })).toMatch(/ 127\.0\.0\.1$/)
    }
  })

  it('that are sent twice share one bucket', async () => {
    const server = await serve({ trust: 1, header: 'x-real-ip' })
    const twice = (first: string) => ask(server, ['Host', 'x', 'X-Real-IP', first, 'X-Real-IP', '192.0.2.1'])
    expect([await twice('6.6.6.1'), await twice('6.6.6.2')]).toEqual([
      `200 ${UNKNOWN_ADDRESS}`,
      `429 ${UNKNOWN_ADDRESS}`,
    ])
  })
})

describe('an address that is missing or cannot be read', () => {
  it('shares one bucket, never around the limit', async () => {
    const server = await serve({ trust: 1, header: 'cf-connecting-ip' })
    const answers = [await ask(server)]
    for (const address of ['', 'unknown', '999.1.1.1', '1.1.1.1;x', '%31.1.1.1', 'é']) {
      answers.push(await ask(server, { 'CF-Connecting-IP': address }))
    }
    expect(answers).toEqual(answers.map((_, i) => `${i === 0 ? 200 : 429} ${UNKNOWN_ADDRESS}`))
  })

  it('behind a Unix socket it is what the proxy tells', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'slidegate-socket-'))
    onTestFinished(() => rm(folder, { recursive: true }))
    const path = join(folder, 'http.sock')
    const counted = await serve({ trust: 1 }, { path })
    expect(await ask(counted, { 'X-Forwarded-For': '6.6.6.6, 192.0.2.1' })).toBe('200 192.0.2.1')
    expect(await ask(counted)).toBe(`200 ${UNKNOWN_ADDRESS}`)
  })

  it('in a header of all the bytes that a server takes, as fast as ever', async () => {
    const server = await serve({ trust: ['127.0.0.0/8'] })
    const long = '127.0.0.1,'.repeat(1500)
    expect(await ask(server, { 'X-Forwarded-For': `${long}192.0.2.1` })).toBe('200 192.0.2.1')
    // A chain of proxies only, longer than any.
    expect(await ask(server, { 'X-Forwarded-For': `${long}127.0.0.1` })).toBe(`200 ${UNKNOWN_ADDRESS}`)
    expect(await ask(server, { 'X-Forwarded-For': '1'.repeat(20_000) })).toMatch(/^431 /)
  })
})
