
      import { Redis } from 'ioredis'
      import { concurrency, createLimiter } from 'slidegate'
      import { redisStore } from 'slidegate/redis'
      const store = redisStore(new Redis(15828), { prefix: 'slidegate:killed' })
      const limits = [concurrency({ limit: 1, ttl: 9000 })]
      const permit = await createLimiter({ limits, store, timeoutMs: 30_000 }).acquire('k')
      process.send(permit.allowed)
      setInterval(() => {}, 1000)
    