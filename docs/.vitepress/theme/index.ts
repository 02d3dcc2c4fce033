import theme from 'vitepress/theme-without-fonts'
import './style.css'

// biome-ignore lint/style/noDefaultExport: so VitePress wants it.
export default theme
