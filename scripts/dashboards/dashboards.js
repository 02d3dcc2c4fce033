import { limiter } from './limiter.js'
import { overview } from './overview.js'
import { store } from './store.js'

/** File name -> dashboard. */
export const dashboards = { overview, limiter, store }
