// @ts-check
import { slidingWindow } from 'slidegate'
import { withRateLimit } from 'slidegate/fetch'

export const GET = withRateLimit(() => Response.json({ quote: 'Enough is as good as a feast.' }), {
  name: 'quotes',
  limits: [slidingWindow({ limit: 5, window: '1m' })],
  // Next.js doesn't expose the client's address. The proxy in front sends it in X-Forwarded-For.
  address: { trust: 1 },
})
