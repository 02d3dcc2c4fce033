import { createCssVariablesTheme, type ShikiTransformer, type ThemeRegistration } from 'shiki'

/** Colours by name; theme/style.css has them for light and dark. */
export const colours: ThemeRegistration = createCssVariablesTheme({
  variablePrefix: '--code-',
  fontStyle: false,
})

/** Classes in place of styles, and nothing around plain text: the many pages of code are a third as large. */
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
