// tier: system
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { describe, expect, it } from 'vitest'
import { ROOT } from '../docs/markdown.ts'
import { COMMANDS } from '../support/access.ts'
import { startRedisWithClock } from '../support/clock-shim.ts'
import { startCluster } from '../support/redis-cluster.ts'
import { startSentinel } from '../support/redis-sentinel.ts'
import { startRedis } from '../support/redis-server.ts'
import { makeCertificates, startTlsRedis } from '../support/tls.ts'

describe('all tests have no more rights than that', () => {
  async function expectRestricted(port: number, options = {}): Promise<void> {
    const redis = new Redis(port, options)
    const user = (await redis.call('ACL', 'GETUSER', 'default')) as unknown[]
    const [flags, commands, keys, channels] = ['flags', 'commands', 'keys', 'channels'].map(
      (name) => user[user.indexOf(name) + 1],
    )
    expect(flags).not.toEqual(expect.arrayContaining([expect.stringMatching(/^all/)]))
    expect((commands as string).split(' ').sort()).toEqual(
      ['-@all', ...COMMANDS.map((name) => `+${name}`)].sort(),
    )
    expect({ keys, channels }).toEqual({ keys: '~slidegate:*', channels: '' })
    await expect(redis.set('elsewhere', 1)).rejects.toThrow('NOPERM')
    await expect(redis.get('elsewhere')).rejects.toThrow('NOPERM')
    redis.disconnect()
  }

  it('on one server, also after a restart', async () => {
    const mortal = await startRedis()
    await expectRestricted(mortal.port)
    await mortal.kill()
    await mortal.start()
    await expectRestricted(mortal.port)
    await mortal.stop()
  })

  it('with TLS', async () => {
    const certificates = await makeCertificates()
    const safe = await startTlsRedis(certificates)
    await expectRestricted(safe.port, { tls: { ca: certificates.ca } })
    await safe.stop()
    await certificates.remove()
  })

  it('with a clock that can be set', async () => {
    const stepped = await startRedisWithClock()
    await expectRestricted(stepped.port)
    await stepped.stop()
  })

  it('behind a Sentinel', async () => {
    const sentinel = await startSentinel()
    for (const { port } of sentinel.servers) await expectRestricted(port)
    await sentinel.stop()
  })

  it('on a Cluster', async () => {
    const cluster = await startCluster({ masters: 3, replicas: 0 })
    for (const { port } of cluster.nodes) await expectRestricted(port)
    await cluster.stop()
  })

  it('and start no other servers, nor give everybody more', () => {
    // A replay writes beside the keys of limiters, and so do other limiters that the documentation compares with;
    // what other versions have stored is put where it lay. Instructions are counted without the server's periodic jobs,
    // calls by its own statistics.
    const mayDoSo =
      /support.(access|instructions|redis-process|redis-server)\.ts$|slidegate.test.allocations|server.test.replay|docs.open-redis|traps.acl|slidegate.test.compatibility/
    const files = ['packages/slidegate/test', 'packages/server/test', 'bench/test', 'examples/test'].flatMap(
      (folder) =>
        readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' }).map((file) =>
          join(folder, file),
        ),
    )
    const lifting = files
      .filter((file) => /\.[jt]s$/.test(file) && !file.includes('node_modules') && !mayDoSo.test(file))
      .filter((file) =>
        /allowAll|'SETUSER', 'default'|--user|'redis-server'/.test(readFileSync(join(ROOT, file), 'utf8')),
      )
    expect(lifting).toEqual([])
  })
})
