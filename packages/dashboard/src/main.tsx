import { render } from 'preact'
import { takeTokenOfLink } from './api.ts'
import { App } from './app.tsx'
import { keptTheme, setTheme } from './theme.ts'

setTheme(keptTheme())
takeTokenOfLink()
render(<App />, document.getElementById('app')!)
