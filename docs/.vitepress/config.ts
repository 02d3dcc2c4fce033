import { readFileSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { defineConfig } from 'vitepress'
import { rewritten } from './addresses.ts'
import { emptyHeadings, indentedCode } from './blocks.ts'
import { classes, colors } from './code.ts'
import { repositoryLinks } from './links.ts'
import { anchor, ROOT } from './markdown.ts'
import { nav, sidebar } from './sidebar.ts'
import { linkedSources } from './sources.ts'

const icon = readFileSync(join(ROOT, 'packages/dashboard/public/icon.svg'), 'base64')

// biome-ignore lint/style/noDefaultExport: VitePress needs it.
export default defineConfig({
  title: 'slidegate',
  description: 'An exact sliding-window rate limiter: a library for Node, and a service for everything else.',
  lang: 'en-GB',
  head: [['link', { rel: 'icon', href: `data:image/svg+xml;base64,${icon}` }]],
  srcDir: '..',
  srcExclude: ['**/coverage/**', 'reports/**'],
  rewrites: rewritten,
  cleanUrls: true,
  metaChunk: true,
  markdown: {
    config: (md) => md.use(repositoryLinks).use(emptyHeadings).use(indentedCode),
    anchor: { slugify: anchor },
    theme: colors,
    codeTransformers: [classes],
    languageAlias: { promql: 'sql' },
  },
  themeConfig: {
    nav,
    sidebar,
    outline: { level: [2, 3] },
    search: {
      provider: 'local',
      options: {
        // So the button's name is its text, which includes the key.
        translations: { button: { buttonAriaLabel: '' } },
        // The index doesn't need colors.
        _render: (src, env, md) => {
          const { highlight } = md.options
          md.set({ highlight: null })
          try {
            return md.render(src, env)
          } finally {
            md.set({ highlight })
          }
        },
      },
    },
  },
  async buildEnd({ outDir }) {
    for (const [address, contents] of linkedSources()) {
      const file = join(outDir, address)
      await mkdir(dirname(file), { recursive: true })
      await writeFile(file, contents)
    }
  },
  vite: {
    // The search index is large. The browser loads it with the first search.
    build: { chunkSizeWarningLimit: 2048 },
    plugins: [
      {
        name: 'sources',
        configureServer({ middlewares }) {
          middlewares.use('/source', ({ originalUrl = '' }, res, next) => {
            const contents = linkedSources().get(originalUrl)
            if (contents === undefined) next()
            else res.end(contents)
          })
        },
      },
    ],
  },
})
