// @ts-nocheck: the repository's type check doesn't support decorators.
//
// A Nest app with @nestjs/throttler that counts with slidegate. Set REDIS_URL to share the counts.
//
//   npm run example nest-throttler
import 'reflect-metadata'
import type { AddressInfo } from 'node:net'
import { Controller, Get, Module } from '@nestjs/common'
import { APP_GUARD, NestFactory } from '@nestjs/core'
import { ThrottlerGuard, ThrottlerModule } from '@nestjs/throttler'
import { memoryStore } from 'slidegate'
import { redisStore } from 'slidegate/redis'
import { SlidegateThrottlerStorage } from './storage.js'

const url = process.env.REDIS_URL
const store = url ? redisStore({ url }) : memoryStore()

@Controller()
class AppController {
  @Get()
  hello(): string {
    return 'hello\n'
  }
}

@Module({
  imports: [
    ThrottlerModule.forRoot({
      throttlers: [{ limit: 3, ttl: 60_000, blockDuration: 0 }],
      storage: new SlidegateThrottlerStorage({ store }),
    }),
  ],
  controllers: [AppController],
  providers: [{ provide: APP_GUARD, useClass: ThrottlerGuard }],
})
class AppModule {}

const app = await NestFactory.create(AppModule, { logger: ['error', 'warn'] })
await app.listen(Number(process.env.PORT ?? 0), '127.0.0.1')
const { port } = app.getHttpServer().address() as AddressInfo
console.log(`http://127.0.0.1:${port}`)
