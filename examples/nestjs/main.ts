// @ts-nocheck: the repository's type check doesn't support decorators.
//
// A Nest app: five requests per minute for each address, two for the search, no limit for the health check.
//
//   npm run example nestjs
import 'reflect-metadata'
import type { AddressInfo } from 'node:net'
import { Controller, Get, Injectable, Module } from '@nestjs/common'
import { NestFactory } from '@nestjs/core'
import { slidingWindow } from 'slidegate'
import { RateLimit, RateLimitModule, SkipRateLimit } from 'slidegate/nest'

@Injectable()
class Library {
  books(): string[] {
    return ['Notes', 'Sketch']
  }
}

@Controller('books')
class BooksController {
  constructor(private readonly library: Library) {}

  @Get()
  list(): string[] {
    return this.library.books()
  }

  @Get('search')
  @RateLimit({ limits: [slidingWindow({ name: 'search-per-minute', limit: 2, window: '1m' })] })
  search(): string[] {
    return this.library.books().filter((title) => title.startsWith('N'))
  }
}

@Controller('health')
@SkipRateLimit()
class HealthController {
  @Get()
  check(): string {
    return 'ok'
  }
}

@Module({
  imports: [RateLimitModule.forRoot({ limits: [slidingWindow({ limit: 5, window: '1m' })] })],
  controllers: [BooksController, HealthController],
  providers: [Library],
})
class AppModule {}

const app = await NestFactory.create(AppModule, { logger: ['error', 'warn'] })
await app.listen(Number(process.env.PORT ?? 0), '127.0.0.1')
const { port } = app.getHttpServer().address() as AddressInfo
console.log(`http://127.0.0.1:${port}`)
