// A Worker that runs all that every store promises on the memory store, and tells what is broken.

import { memoryStore } from 'slidegate'
import { storeConformance } from 'slidegate/testing'

// biome-ignore lint/style/noDefaultExport: what a Worker is
export default {
  async fetch(request: Request): Promise<Response> {
    if (request.url.endsWith('/up')) return new Response()
    const broken: string[] = []
    for (const each of storeConformance) {
      await each.run(memoryStore).catch((error) => broken.push(`${each.name}: ${error.message}`))
    }
    return Response.json({ cases: storeConformance.length, broken })
  },
}
