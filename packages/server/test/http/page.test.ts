import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { request as ask } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Fastify from 'fastify'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { App } from '../../src/http/context.ts'
import { pageRoutes } from '../../src/http/page.ts'
import { type TestService, testService } from '../support/service.ts'

interface Answer {
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly body: string
}

/** Sends the path unchanged. `fetch` would normalize it. */
function get(url: string, path: string, method = 'GET', headers = {}): Promise<Answer> {
  const { hostname, port } = new URL(url)
  return new Promise((resolve, reject) => {
    const sent = ask({ hostname, port, path, method, headers, agent: false }, (answer) => {
      let body = ''
      answer.setEncoding('utf8').on('data', (text: string) => {
        body += text
      })
      answer.once('end', () => resolve({ status: answer.statusCode!, headers: answer.headers, body }))
    })
    sent.once('error', reject).end()
  })
}

describe('the files of the dashboard', () => {
  let folder: string
  let app: App
  let url: string
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'slidegate-page-'))
    await mkdir(join(folder, 'page', 'assets', 'below'), { recursive: true })
    await writeFile(join(folder, 'page', 'index.html'), '<!doctype html><title>slidegate</title>')
    await writeFile(join(folder, 'page', 'icon.svg'), '<svg/>')
    await writeFile(join(folder, 'page', 'assets', 'index-1a2b.js'), 'export {}')
    await writeFile(join(folder, 'page', 'assets', '.hidden'), 'secret')
    await writeFile(join(folder, 'page', 'assets', 'below', 'more.js'), 'secret')
    await writeFile(join(folder, 'secret.txt'), 'secret')
    app = Fastify() as unknown as App
    pageRoutes(app, join(folder, 'page'))
    url = await app.listen({ host: '127.0.0.1', port: 0 })
  })
  afterAll(async () => {
    await app.close()
    await rm(folder, { recursive: true, force: true })
  })

  it('carry a content security policy that blocks everything else', async () => {
    for (const [path, type] of [
      ['/', 'text/html; charset=utf-8'],
      ['/icon.svg', 'image/svg+xml'],
      ['/assets/index-1a2b.js', 'application/javascript; charset=utf-8'],
    ] as const) {
      const { status, headers } = await get(url, path)
      expect(status).toBe(200)
      expect(headers).toMatchObject({
        'content-type': type,
        'content-security-policy':
          "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
        'cross-origin-opener-policy': 'same-origin',
        'cross-origin-resource-policy': 'same-origin',
        'referrer-policy': 'no-referrer',
        'x-content-type-options': 'nosniff',
      })
    }
  })

  it('stay cached for a year if their name contains a hash', async () => {
    expect((await get(url, '/')).headers['cache-control']).toBe('no-cache')
    expect((await get(url, '/icon.svg')).headers['cache-control']).toBe('no-cache')
    const { headers } = await get(url, '/assets/index-1a2b.js')
    expect(headers['cache-control']).toBe('public, max-age=31536000, immutable')
  })

  it('get 304 if the client has them', async () => {
    const { etag } = (await get(url, '/')).headers
    const { status, headers, body } = await get(url, '/', 'GET', { 'if-none-match': etag })
    expect([status, body]).toEqual([304, ''])
    expect(headers['content-security-policy']).toContain("default-src 'none'")
  })

  it.each([
    ['gzip, deflate, br, zstd', 'gzip'],
    ['gzip', 'gzip'],
    ['br;q=0, GZIP;q=0.5', 'gzip'],
    ['br; q=0.0, gzip;q=0', undefined],
    ['identity', undefined],
    ['', undefined],
  ])('files are sent compressed to a client that accepts "%s": %s', async (accepted, encoding) => {
    const { status, headers } = await get(url, '/assets/index-1a2b.js', 'HEAD', {
      'accept-encoding': accepted,
    })
    expect(status).toBe(200)
    expect(headers).toMatchObject({
      'content-type': 'application/javascript; charset=utf-8',
      'cache-control': 'public, max-age=31536000, immutable',
      vary: 'Accept-Encoding',
    })
    expect(headers['content-encoding']).toBe(encoding)
    const answer = await fetch(`${url}/assets/index-1a2b.js`, { headers: { 'accept-encoding': accepted } })
    expect(await answer.text()).toBe('export {}')
  })

  it('get 304 in any encoding that the client has, and the page itself is sent uncompressed', async () => {
    const path = '/assets/index-1a2b.js'
    const { etag } = (await get(url, path, 'GET', { 'accept-encoding': 'gzip' })).headers
    const ask = async (encoding: string) =>
      (await get(url, path, 'GET', { 'accept-encoding': encoding, 'if-none-match': etag })).status
    expect([await ask('gzip'), await ask('identity')]).toEqual([304, 304])
    const { status, headers } = await get(url, '/', 'GET', { 'accept-encoding': 'gzip' })
    expect([status, headers['content-encoding']]).toEqual([200, undefined])
  })

  it('answer HEAD like GET, without a body', async () => {
    for (const path of ['/', '/assets/index-1a2b.js']) {
      const [head, whole] = [await get(url, path, 'HEAD'), await get(url, path)]
      expect(head.status).toBe(200)
      expect(head.body).toBe('')
      expect(head.headers['content-length']).toBe(whole.headers['content-length'])
    }
  })

  it.each([
    '/assets/../../secret.txt',
    '/assets/..%2f..%2fsecret.txt',
    '/assets/%2e%2e/%2e%2e/secret.txt',
    '/assets/..%5c..%5csecret.txt',
    '/assets/.hidden',
    '/assets/%2ehidden',
    '/assets/below',
    '/assets/below%2fmore.js',
    '/assets/below/more.js',
    '/assets/',
    '/assets/index-1a2b.js%00.txt',
    '/../secret.txt',
    '//secret.txt',
    '/secret.txt',
    '/index.html',
  ])('exclude %s', async (path) => {
    const { status, body } = await get(url, path)
    expect(status).toBeGreaterThanOrEqual(400)
    expect(body).not.toBe('secret')
  })

  it('get 404 with an explanation if they are not built', async () => {
    await using _ = { [Symbol.asyncDispose]: () => bare.close() }
    const bare = Fastify() as unknown as App
    pageRoutes(bare, join(folder, 'nothing'))
    const bareUrl = await bare.listen({ host: '127.0.0.1', port: 0 })
    const { status, headers, body } = await get(bareUrl, '/')
    expect([status, headers['content-type']]).toEqual([404, 'text/plain; charset=utf-8'])
    expect(body).toMatch(/^The dashboard isn't built\. Run npm run build\./)
    expect((await get(bareUrl, '/icon.svg')).status).toBe(404)
  })
})

describe('the dashboard of the service', () => {
  let service: TestService
  beforeAll(async () => {
    service = await testService({
      limiters: {},
      auth: { tokens: [{ name: 'operator', role: 'admin', token: 'a-token-that-may-do-it-all' }] },
    })
  })
  afterAll(() => service[Symbol.asyncDispose]())

  it('needs no token, but its requests do', async () => {
    expect((await get(service.httpUrl, '/')).status).toBe(200)
    expect((await get(service.httpUrl, '/v1/admin/overview')).status).toBe(401)
  })

  it('appears in /openapi.json, but its assets do not', async () => {
    const { body } = await service.get('/openapi.json')
    expect(Object.keys(body.paths['/'])).toEqual(['get'])
    expect(Object.keys(body.paths).filter((path) => path.startsWith('/assets'))).toEqual([])
  })

  it('leaves other routes unchanged', async () => {
    const { status, headers } = await service.get('/nothing')
    expect([status, headers.get('content-type')]).toEqual([404, 'application/problem+json; charset=utf-8'])
    expect((await service.get('/assets/nothing.js')).body.code).toBe('not_found')
    expect((await service.post('/', {})).status).toBe(404)
  })

  it('rejects unknown hosts', async () => {
    const { status } = await get(service.httpUrl, '/', 'GET', { host: 'rebound.example' })
    expect(status).toBe(421)
  })

  it('compresses /metrics for a client that accepts gzip', async () => {
    const headers = { authorization: 'Bearer a-token-that-may-do-it-all' }
    const ask = (encoding: string) =>
      fetch(`${service.httpUrl}/metrics`, { headers: { ...headers, 'accept-encoding': encoding } })
    const [plain, compressed] = [await ask('identity'), await ask('gzip')]
    expect(plain.headers.get('content-encoding')).toBe(null)
    expect(compressed.headers.get('content-encoding')).toBe('gzip')
    for (const answer of [plain, compressed]) {
      expect(answer.headers.get('vary')).toBe('Accept-Encoding')
      expect(answer.headers.get('content-type')).toMatch(/^text\/plain/)
      expect(await answer.text()).toContain('slidegate_build_info')
    }
  })
})
