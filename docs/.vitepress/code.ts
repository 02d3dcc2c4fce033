import { createCssVariablesTheme, type ShikiTransformer, type ThemeRegistration } from 'shiki'

/** Colors by name. theme/style.css defines them for light and dark. */
export const colors: ThemeRegistration = createCssVariablesTheme({
  variablePrefix: '--code-',
  fontStyle: false,
})

/** Writes classes instead of styles, and no element around plain text. Pages of code become a third as large. */
export const classes: ShikiTransformer = {
  name: 'classes',
  line(line) {
    line.children = line.children.flatMap((token) => {
      if (token.type !== 'element') return token
      const [, name] = /--code-token-([a-z-]+)/.exec(`${token.properties.style}`) ?? []
      if (name === undefined || name === 'punctuation' || name === 'parameter') return token.children
      return { ...token, properties: { class: name } }
    })
  },
}
