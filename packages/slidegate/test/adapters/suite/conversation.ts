import { expect, it } from 'vitest'
import type { GuardOptions, HandlerArguments } from '../../../src/http/index.ts'
import { createLimiter, fixedWindow, slidingWindow } from '../../../src/index.ts'
import { type AdapterUnderTest, ask, newStore, type Server, serve, time } from './fixture.ts'

/** A client's request, and its delay after the previous one. */
interface Line {
  readonly laterMs?: number
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
}

const ann = { 'x-user': 'ann' }
const bob = { 'x-user': 'bob' }

const SCRIPT: readonly Line[] = [
  { headers: ann },
  { headers: ann, laterMs: 1500 },
  { headers: bob },
  { headers: { ...ann, 'x-cost': '2' } },
  { headers: ann, laterMs: 500 },
  { headers: ann },
  { headers: { ...ann, accept: 'text/html' } },
  { headers: { ...ann, accept: 'text/plain' }, method: 'POST' },
  { headers: ann, method: 'HEAD' },
  { headers: { ...ann, 'x-cost': '0' } },
  { headers: { ...ann, 'x-cost': '9' } },
  { headers: { 'x-user': '' } },
  { headers: { 'x-friend': 'yes' } },
  { headers: { 'x-forwarded-for': '192.0.2.66' } },
  { headers: { 'x-forwarded-for': '192.0.2.66', accept: 'text/html' } },
  { headers: { 'x-forwarded-for': '10.0.0.1' } },
  { headers: { ...bob, 'x-cost': '3' }, laterMs: 8000 },
  { headers: { ...bob, 'x-status': '404' } },
  { headers: bob, laterMs: 10_000 },
  { headers: ann, laterMs: 60_000 },
]

/** Tests that the same conversation gets the same responses in every framework. */
export function conversationSuite<Args extends HandlerArguments>(adapter: AdapterUnderTest<Args>): void {
  const said = (name: string) => (request: Args[0]) => adapter.header(request, name)

  it('a scripted conversation gets the same responses as in every other framework', async () => {
    const store = newStore()
    const shared: GuardOptions<Args> = {
      address: { trust: ['loopback'] },
      key: (request) => said('x-user')(request) ?? 'nobody',
      skip: async (request) => said('x-friend')(request) === 'yes',
    }
    const burst: GuardOptions<Args> = {
      ...shared,
      limiter: createLimiter({
        name: 'burst',
        limits: [
          slidingWindow({ limit: 4, window: '10s', name: 'burst' }),
          slidingWindow({ limit: 3, window: '1s', name: 'second', shadow: true }),
        ],
        store,
      }),
      cost: (request) => Number(said('x-cost')(request) ?? 1),
      deny: ['192.0.2.0/24'],
      allow: ['10.0.0.0/8'],
    }
    const minute: GuardOptions<Args> = {
      ...shared,
      ...{ limits: [fixedWindow({ limit: 5, window: '1m', name: 'minute' })], name: 'minute', store },
    }
    const server = await serve(adapter, [burst, minute])
    let transcript = ''
    for (const line of SCRIPT) transcript += `${await spoken(server, line)}\n`
    await expect(transcript).toMatchFileSnapshot('./suite/conversation.txt')
  })
}

/** Headers that frameworks and Node set themselves. */
const THEIRS = [
  'connection',
  'content-length',
  'date',
  'etag',
  'keep-alive',
  'transfer-encoding',
  'x-powered-by',
]

async function spoken(server: Server, { laterMs = 0, method = 'GET', headers = {} }: Line): Promise<string> {
  time.nowMs += laterMs
  const response = await ask(server, headers, { method })
  const isServed = response.status === Number(headers['x-status'] ?? 200)
  const isOurs = (name: string) => !THEIRS.includes(name) && !(isServed && name === 'content-type')
  const lines = [
    `${laterMs > 0 ? `${laterMs} ms later: ` : ''}${method} ${JSON.stringify(headers)}`,
    `  ${response.status}`,
    ...[...response.headers].filter(([name]) => isOurs(name)).map(([name, value]) => `  ${name}: ${value}`),
  ]
  const body = await response.text()
  return `${[...lines, ...(body === '' ? [] : [`  ${JSON.stringify(body)}`])].join('\n')}\n`
}
