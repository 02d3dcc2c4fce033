// tier: system
import { createServer, request, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import express from 'express'
import Fastify from 'fastify'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { randomSequence } from '../../../replay/test/support/logs.ts'
import { lowerCase, readingsOf } from '../../src/gateway/path.ts'
import { type Gateway, startPathCaddy, startPathNginx } from './support/programs.ts'

// The readings must include every path that a real server reads: otherwise a client could bypass a rule.

const NAMES = [
  'login',
  'LOGIN',
  'log%69n',
  'a',
  'b',
  '',
  '.',
  '..',
  '%2e',
  '%2E%2e',
  '.%2e',
  'x;y=1',
  ';',
  '..;',
  '%3b',
  'caf%c3%a9',
  'log%2569n',
  '%252e%252e',
]
const SEPARATORS = ['/', '/', '/', '//', '%2f', '%2F', '%5c', '/./', '/;/', '%252f']
const ENDS = ['', '', '/', '?x=/../login', ';v=1', '%20', '.', '%00', '%3fx', '%23x', '%2500', '%09']

function pathsOf(seed: number, count: number): string[] {
  const random = randomSequence(seed)
  const one = (list: readonly string[]) => list[Math.floor(random() * list.length)]!
  return Array.from({ length: count }, () => {
    let path = ''
    for (let i = Math.floor(random() * 5); i >= 0; i--)
      path += (path === '' ? '/' : one(SEPARATORS)) + one(NAMES)
    return path + one(ENDS)
  })
}

/** Returns a server's response to an unmodified path, if it is 200 with a body. */
function answerTo(port: number, path: string): Promise<string | undefined> {
  return new Promise((resolve, reject) => {
    request({ host: '127.0.0.1', port, path }, (response) => {
      let text = ''
      response.setEncoding('latin1').on('data', (more: string) => {
        text += more
      })
      response.once('end', () => resolve(response.statusCode === 200 && text !== '' ? text : undefined))
    })
      .once('error', reject)
      .end()
  })
}

/** Returns the paths that a server accepts, each with the path that it reads. */
async function takenBy(port: number, paths: readonly string[]): Promise<[path: string, taken: string][]> {
  const answers: [string, string][] = []
  for (const path of paths) {
    const taken = await answerTo(port, path)
    if (taken !== undefined) answers.push([path, taken])
  }
  return answers
}

function isAmongReadings(path: string, taken: string): boolean {
  const bare = (text: string) => lowerCase(text).replace(/(?<=.)\/$/, '')
  const readings = readingsOf(path)
  // The service rejects such a path.
  if (readings === undefined) return true
  return readings.some((reading) => bare(reading) === bare(taken))
}

const PATHS = [...pathsOf(1, 4500), '/login', '//login', '/a/../login', '/a/..%2flogin', '/a/;/../login']

test('readings include every path that nginx reads', async () => {
  await using nginx = await startPathNginx()
  const taken = await takenBy(nginx.port, PATHS)
  expect(taken.length).toBeGreaterThan(1000)
  expect(taken.filter(([path, uri]) => !isAmongReadings(path, uri))).toEqual([])
})

describe('readings include every path that a router reads', () => {
  const ROUTES = ['/login', '/a/login', '/b/login', '/a/b', '/login/a', '/']
  const servers: Server[] = []
  const routerOptions = {
    ignoreDuplicateSlashes: true,
    ignoreTrailingSlash: true,
    caseSensitive: false,
    useSemicolonDelimiter: true,
  }
  const fastify = Fastify({ routerOptions })
  const ports = new Map<string, number>()
  let caddy: Gateway
  beforeAll(async () => {
    const app = express()
    for (const route of ROUTES) {
      app.get(route, (_request, response) => void response.send(route))
      fastify.get(route, () => route)
    }
    const server = createServer(app)
    // Keeps connections open, so that none closes during a request after a pause.
    server.keepAliveTimeout = 0
    servers.push(server)
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    ports.set('express', (server.address() as AddressInfo).port)
    await fastify.listen({ host: '127.0.0.1', port: 0 })
    caddy = await startPathCaddy(ROUTES)
    ports.set('caddy', caddy.port)
    ports.set('fastify', (fastify.server.address() as AddressInfo).port)
  })
  afterAll(async () => {
    for (const server of servers) {
      server.closeAllConnections()
      server.close()
    }
    await fastify.close()
    await caddy[Symbol.asyncDispose]()
  })

  test.each(['express', 'fastify', 'caddy'])('%s', async (name) => {
    const taken = await takenBy(ports.get(name)!, PATHS)
    expect(taken.length).toBeGreaterThan(40)
    expect(taken.filter(([path, route]) => !isAmongReadings(path, route))).toEqual([])
  })
})
