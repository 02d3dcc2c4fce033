import preact from '@preact/preset-vite'
import { defineConfig } from 'vite'

/** The page is static files of the service: relative addresses, so that it may stand below any path. */
export default defineConfig({
  base: './',
  plugins: [preact()],
  worker: { format: 'es' },
  build: {
    outDir: '../server/page',
    emptyOutDir: true,
    target: 'es2022',
    // Nothing inline: the policy of the page forbids it.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
  },
})
