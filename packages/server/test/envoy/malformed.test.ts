// tier: system
import { connect as connectTcp } from 'node:net'
import { gzipSync } from 'node:zlib'
import { Client, credentials, type ServiceError, status } from '@grpc/grpc-js'
import fc from 'fast-check'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { anyCharacter } from '../../../slidegate/test/support/characters.ts'
import { METHOD, type RateLimitClient, rateLimitClient } from './support/client.ts'
import { type EnvoyService, envoyService } from './support/envoy-service.ts'

const RULES = {
  'rules.yaml': `domain: rl
descriptors:
  - { key: user, rate_limit: { unit: hour, requests_per_unit: 1000000 } }
  - { key: path, value: '/*', rate_limit: { unit: hour, requests_per_unit: 3 } }
  - { key: user, value: canary, rate_limit: { unit: day, requests_per_unit: 100000 } }
`,
}

let service: EnvoyService
let client: RateLimitClient
let asked = 0

beforeAll(async () => {
  service = await envoyService(RULES, { envoy: { files: [], limitOverrides: true, timeoutMs: 60_000 } })
  client = rateLimitClient(service.grpcAddress)
})
afterAll(async () => {
  client[Symbol.dispose]()
  await service.stop()
})

/** Checks that the server still responds, and that nothing was charged to the canary. */
async function expectAlive(): Promise<void> {
  asked++
  const { statuses } = await client.ask('rl', [{ user: 'canary' }])
  expect(statuses[0]!.limitRemaining).toBe(100_000 - asked)
}

/** Returns the result of a message: `OK` or a status. */
async function answerTo(bytes: Uint8Array): Promise<string> {
  const answer = await client.send(bytes).then(
    () => 'OK',
    (error: ServiceError) => status[error.code]!,
  )
  expect(['OK', 'INVALID_ARGUMENT', 'RESOURCE_EXHAUSTED']).toContain(answer)
  return answer
}

// Valid fields, and many invalid ones.
const text = fc.oneof(
  fc.constantFrom(
    '',
    'rl',
    'user',
    'path',
    '/x',
    '*',
    '__proto__',
    'constructor',
    '\u0000',
    '\uD800',
    '%|=~',
  ),
  fc.string({ unit: anyCharacter, maxLength: 40 }),
  fc.string({ minLength: 200, maxLength: 2000 }),
)
const uint = fc.oneof(fc.constantFrom(0, 1, 2 ** 31, 2 ** 32 - 1), fc.nat(10))
const message = fc.record({
  domain: fc.oneof({ weight: 5, arbitrary: fc.constant('rl') }, text),
  descriptors: fc.array(
    fc.record(
      {
        entries: fc.array(fc.record({ key: text, value: text }), { maxLength: 4 }),
        limit: fc.record({ requestsPerUnit: uint, unit: fc.integer({ min: -1, max: 9 }) }),
        hitsAddend: fc.record({ value: fc.oneof(uint, fc.constant('18446744073709551615')) }),
        isNegativeHits: fc.boolean(),
      },
      { requiredKeys: [] },
    ),
    { maxLength: 70 },
  ),
  hitsAddend: uint,
})
// Only the canary test uses this value.
const encoded = message.map((value) => METHOD.requestSerialize(value))

it('random bytes get a status and leave the server running', async () => {
  await fc.assert(
    fc.asyncProperty(fc.uint8Array({ maxLength: 300 }), async (bytes) => {
      await answerTo(bytes)
    }),
    { numRuns: 300 },
  )
  await expectAlive()
})

it('random messages get OK or INVALID_ARGUMENT', async () => {
  const answers = new Set<string>()
  await fc.assert(
    fc.asyncProperty(encoded, async (bytes) => {
      answers.add(await answerTo(bytes))
    }),
    { numRuns: 300 },
  )
  expect(answers).toEqual(new Set(['OK', 'INVALID_ARGUMENT']))
  await expectAlive()
})

it('mutated messages leave the server running', async () => {
  const changes = fc.array(
    fc.tuple(fc.nat(), fc.integer({ min: 0, max: 255 }), fc.constantFrom('set', 'cut', 'insert')),
    {
      minLength: 1,
      maxLength: 5,
    },
  )
  await fc.assert(
    fc.asyncProperty(encoded, changes, async (bytes, all) => {
      let changed = Array.from(bytes)
      for (const [at, byte, how] of all) {
        const index = changed.length === 0 ? 0 : at % changed.length
        if (how === 'set') changed[index] = byte
        else if (how === 'insert') changed.splice(index, 0, byte)
        else changed = changed.slice(0, index)
      }
      await answerTo(Uint8Array.from(changed))
    }),
    { numRuns: 300 },
  )
  await expectAlive()
})

it('deeply nested groups are rejected', async () => {
  expect(await answerTo(new Uint8Array(500_000).fill(0x5b))).toBe('INVALID_ARGUMENT')
  await expectAlive()
})

it('messages that are too large after decompression are rejected', async () => {
  const bomb = METHOD.requestSerialize({ domain: 'a'.repeat(50_000_000) })
  const packed = gzipSync(bomb)
  const raw = new Client(service.grpcAddress, credentials.createInsecure(), {
    'grpc.default_compression_algorithm': 2,
    'grpc.max_send_message_length': -1,
  })
  expect(packed.length).toBeLessThan(100_000)
  const answer = await new Promise<string>((resolve) => {
    raw.makeUnaryRequest(
      METHOD.path,
      () => bomb,
      (bytes) => bytes,
      undefined,
      (error) => resolve(error === null ? 'OK' : status[error.code]!),
    )
  })
  raw.close()
  expect(answer).toBe('RESOURCE_EXHAUSTED')
  await expectAlive()
})

it('invalid frames leave the server running', async () => {
  const port = Number(service.grpcAddress.split(':').at(-1))
  const preface = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')
  const settings = Buffer.from([0, 0, 0, 4, 0, 0, 0, 0, 0])
  await fc.assert(
    fc.asyncProperty(fc.uint8Array({ maxLength: 200 }), fc.boolean(), async (bytes, isGreeted) => {
      const socket = connectTcp(port, '127.0.0.1')
      socket.on('error', () => {})
      socket.write(Buffer.concat(isGreeted ? [preface, settings, bytes] : [bytes]))
      // A server always sends its settings first.
      await new Promise((resolve) => socket.on('data', resolve).on('close', resolve))
      socket.destroy()
    }),
    { numRuns: 100 },
  )
  await expectAlive()
})

it('unknown methods are rejected', async () => {
  const answer = await new Promise<string>((resolve) => {
    client.raw.makeUnaryRequest(
      '/envoy.service.ratelimit.v3.RateLimitService/Other',
      (bytes: Buffer) => bytes,
      (bytes) => bytes,
      Buffer.alloc(0),
      (error) => resolve(error === null ? 'OK' : status[error.code]!),
    )
  })
  expect(answer).toBe('UNIMPLEMENTED')
  await expectAlive()
})
