// Serves the built site on this machine:
//
//   node serve.js --port 4173 --base /slidegate/
import { createServer } from 'node:http'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import sirv from 'sirv'

/** Pages may only load from their own server. */
const POLICY =
  "default-src 'self'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; img-src 'self' data:"

/**
 * @param {string} folder with the built site
 * @param {string} base the path it was built for, with a slash at both ends
 */
export function siteServer(folder, base) {
  const files = sirv(folder, {
    dev: true,
    setHeaders: (res, path) => {
      res.setHeader('content-security-policy', POLICY)
      if (path.endsWith('.txt')) res.setHeader('content-type', 'text/plain; charset=utf-8')
    },
  })
  return createServer((req, res) => {
    const missing = () => {
      res.writeHead(404, { 'content-type': 'text/plain' }).end('there is no such page')
    }
    if (!req.url?.startsWith(base)) return missing()
    req.url = req.url.slice(base.length - 1)
    files(req, res, missing)
  })
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { values } = parseArgs({
    options: { port: { type: 'string', default: '4173' }, base: { type: 'string', default: '/' } },
  })
  const folder = fileURLToPath(new URL('dist', import.meta.url))
  siteServer(folder, values.base).listen(Number(values.port), '127.0.0.1', () => {
    console.log(`http://127.0.0.1:${values.port}${values.base}`)
  })
}
