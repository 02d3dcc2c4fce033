import { sourceName } from '../../.vitepress/addresses.ts'
import { linkedSources, sourcePage } from '../../.vitepress/sources.ts'

// biome-ignore lint/style/noDefaultExport: VitePress needs it.
export default {
  paths: () => {
    const sources = linkedSources()
    const all = new Set(sources)
    return sources.map((path) => ({ params: { path: sourceName(path) }, content: sourcePage(path, all) }))
  },
}
