import { type EnhanceAppContext, onContentUpdated, useData } from 'vitepress'
import theme from 'vitepress/theme-without-fonts'
import { h } from 'vue'
import { rank } from './rank.ts'
import './style.css'

// biome-ignore lint/style/noDefaultExport: VitePress needs it.
export default { extends: theme, Layout: { setup: layout }, enhanceApp: rankSearch }

/** The theme's layout, whose home page has no landmark for screen readers. */
function layout(): () => unknown {
  const { frontmatter } = useData()
  onContentUpdated(() => {
    const content = document.getElementById('VPContent')
    if (frontmatter.value.layout === 'home') content?.setAttribute('role', 'main')
    else content?.removeAttribute('role')
  })
  return () => h(theme.Layout)
}

/** Functions in the configuration need `eval` in the browser, which the site's policy forbids. */
function rankSearch({ siteData }: EnhanceAppContext): void {
  const { themeConfig } = siteData.value
  const { search } = themeConfig
  const options = { ...search.options, miniSearch: { searchOptions: { boostDocument: rank } } }
  siteData.value = { ...siteData.value, themeConfig: { ...themeConfig, search: { ...search, options } } }
}
