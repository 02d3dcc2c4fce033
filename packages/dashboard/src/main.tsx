import { render } from 'preact'
import { App } from './app.tsx'
import { keptTheme, setTheme } from './theme.ts'

setTheme(keptTheme())
render(<App />, document.getElementById('app')!)
