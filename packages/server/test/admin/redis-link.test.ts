// tier: integration
import { expect, it, onTestFinished } from 'vitest'
import { until } from '../../../slidegate/test/support/until.ts'
import { useRedis } from '../../../slidegate/test/support/use-redis.ts'
import { RedisLink } from '../../src/admin/redis-link.ts'

const { server, redis } = await useRedis()

it('who may not listen is told so once, whatever the reason is each time', async () => {
  const setUser = (...rules: string[]) => redis.call('ACL', 'SETUSER', 'listener', ...rules)
  await setUser('reset', 'on', '>secret-word', '~*', '+@all', '-subscribe')
  const rejected = async () =>
    Number(/cmdstat_subscribe:.*rejected_calls=(\d+)/.exec(await redis.info('commandstats'))?.[1] ?? 0)
  /** It connects anew, now or by itself. */
  const reconnect = () => redis.call('CLIENT', 'KILL', 'USER', 'listener')

  const link = new RedisLink({ url: server.url.replace('://', '://listener:secret-word@') }, '/')
  onTestFinished(() => link.close())
  const told: string[] = []
  link.subscribe(['slidegate:somewhere'], {
    heard: () => {},
    subscribed: () => told.push('subscribed'),
    refused: (reason) => told.push(reason),
  })
  await until('it is refused the command', async () => (await rejected()) > 0)
  await setUser('+subscribe', 'resetchannels')
  const before = await rejected()
  await reconnect()
  await until('it is refused the channel', async () => (await rejected()) > before)
  await setUser('allchannels')
  await reconnect()
  await until('it listens', async () => told.includes('subscribed'))
  expect(told).toEqual([expect.stringContaining('subscribe'), 'subscribed'])
})
