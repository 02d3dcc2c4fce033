// @ts-nocheck: the types of Next.js would change Node's types in the whole repository.
//
// Runs before all routes. Limits each address across the whole app.
import { NextResponse } from 'next/server'
import { slidingWindow } from 'slidegate'
import { withRateLimit } from 'slidegate/fetch'

export const proxy = withRateLimit(() => NextResponse.next(), {
  name: 'app',
  limits: [slidingWindow({ limit: 20, window: '1m' })],
  address: { trust: 1 },
  // Headers set here would replace the headers of the route, which has the tighter limit.
  headers: false,
})

export const config = { matcher: '/api/:path*' }
