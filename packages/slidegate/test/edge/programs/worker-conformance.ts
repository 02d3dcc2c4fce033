// A Worker that runs the conformance suite on the memory store and reports the failed cases.

import { memoryStore } from 'slidegate'
import { storeConformance } from 'slidegate/testing'

// biome-ignore lint/style/noDefaultExport: Workers need it
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
