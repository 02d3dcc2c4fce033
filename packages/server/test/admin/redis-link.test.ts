// tier: integration
import { expect, it, onTestFinished } from 'vitest'
import { until } from '../../../slidegate/test/support/until.ts'
import { useRedis } from '../../../slidegate/test/support/use-redis.ts'
import { RedisLink } from '../../src/admin/redis-link.ts'

const { server, redis } = await useRedis()

it('reports a rejected subscription once, even if the reason changes', async () => {
  const setUser = (...rules: string[]) => redis.call('ACL', 'SETUSER', 'listener', ...rules)
  await setUser('reset', 'on', '>secret-word', '~*', '+@all', '-subscribe')
  const rejected = async () =>
    Number(/cmdstat_subscribe:.*rejected_calls=(\d+)/.exec(await redis.info('commandstats'))?.[1] ?? 0)
  /** Makes the link reconnect. */
  const reconnect = () => redis.call('CLIENT', 'KILL', 'USER', 'listener')

  const link = new RedisLink({ url: server.url.replace('://', '://listener:secret-word@') }, '/')
  onTestFinished(() => link.close())
  const events: string[] = []
  link.subscribe(['slidegate:somewhere'], {
    heard: () => {},
    subscribed: () => events.push('subscribed'),
    refused: (reason) => events.push(reason),
  })
  await until('Redis rejects the command', async () => (await rejected()) > 0)
  await setUser('+subscribe', 'resetchannels')
  const before = await rejected()
  await reconnect()
  await until('Redis rejects the channel', async () => (await rejected()) > before)
  await setUser('allchannels')
  await reconnect()
  await until('it is subscribed', async () => events.includes('subscribed'))
  expect(events).toEqual([expect.stringContaining('subscribe'), 'subscribed'])
})
