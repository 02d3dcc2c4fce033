// @ts-check
import { slidingWindow } from 'slidegate'
import { withRateLimit } from 'slidegate/fetch'

export const GET = withRateLimit(() => Response.json({ quote: 'Enough is as good as a feast.' }), {
  name: 'quotes',
  limits: [slidingWindow({ limit: 5, window: '1m' })],
  // Next.js tells nobody who has connected: the proxy in front of it does, in X-Forwarded-For.
  address: { trust: 1 },
})
