import { expect, it } from 'vitest'
import { createLimiter, failurePolicy, memoryStore, slidingWindow } from '../../src/index.ts'
import type { Store } from '../../src/stores/store.ts'

// When a request times out on one shard of a Cluster, it may call another shard while other timeouts are being handled.

it.each(['allow', 'local'] as const)(
  'a request sent while a deadline passes is decided by the store, onStoreError: %s',
  async (onStoreError) => {
    const domains = [memoryStore(), memoryStore()]
    const shardOf: Store['shardOf'] = ({ parts }) => Number(parts[0]!.set.limiter === 'api/ip')
    let isSilent = false
    const store: Store = {
      shardOf,
      failurePolicy,
      apply(ops, call) {
        const domain = shardOf!(ops[0]!)
        if (isSilent && domain === 0) return
        setTimeout(() => call.resolve(domains[domain]!.applySync(ops).slice(), 0), 1)
      },
      close() {},
    }
    const limiter = createLimiter({
      name: 'api',
      store,
      onStoreError,
      logger: false,
      dimensions: {
        user: [slidingWindow({ limit: 1, window: '1h' })],
        ip: [slidingWindow({ limit: 100, window: '1h' })],
      },
    })
    await limiter.consume({ user: 'u', ip: 'i' })
    // The user's limit denies, so the shard of the user is called first from now on.
    expect((await limiter.consume({ user: 'u', ip: 'i' })).allowed).toBe(false)
    isSilent = true
    const [suspected, other] = await Promise.all([
      limiter.consume({ user: 'u', ip: 'i' }),
      limiter.consume({ user: null, ip: 'i' }),
    ])
    expect(suspected.source).toBe(onStoreError === 'allow' ? 'failOpen' : 'fallback')
    expect(other.source).toBe('store')
    limiter.close()
  },
)
