import { limiter } from './limiter.js'
import { overview } from './overview.js'
import { store } from './store.js'

/** By the name of their file. */
export const dashboards = { overview, limiter, store }
