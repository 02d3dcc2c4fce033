import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import { build, type Metafile } from 'esbuild'

export const SLIDEGATE: string = fileURLToPath(new URL('../../src/index.ts', import.meta.url))
export const CALENDAR: string = fileURLToPath(new URL('../../src/calendar.ts', import.meta.url))
export const CLIENT: string = fileURLToPath(new URL('../../src/stores/remote/index.ts', import.meta.url))
export const HTTP: string = fileURLToPath(new URL('../../src/http/index.ts', import.meta.url))
export const FETCH: string = fileURLToPath(new URL('../../src/adapters/fetch.ts', import.meta.url))

/** What only Node has, or only some of the others: its bare name must stand nowhere, not even behind a `typeof`. */
const NODES_OWN = ['process', 'Buffer', 'global', 'setImmediate', 'clearImmediate', '__dirname', '__filename']

export interface Bundle {
  readonly code: string
  readonly gzippedBytes: number
  readonly imports: Metafile['outputs'][string]['imports']
  readonly inputs: Metafile['outputs'][string]['inputs']
}

/** Peers that run everywhere: whoever uses them brings them along. */
export const PEERS: readonly string[] = ['@opentelemetry/api']

/** As it is made for Workers, edge functions and browsers. Whatever of Node is imported fails, for nothing else is external. */
export async function bundleOf(module: string, format: 'esm' | 'iife' = 'esm'): Promise<Bundle> {
  const { outputFiles, metafile } = await build({
    stdin: { contents: module, resolveDir: fileURLToPath(new URL('.', import.meta.url)), loader: 'ts' },
    bundle: true,
    external: [...PEERS],
    minify: true,
    write: false,
    metafile: true,
    logLevel: 'silent',
    target: 'es2022',
    platform: 'browser',
    conditions: ['workerd', 'edge-light', 'worker'],
    format,
    globalName: format === 'iife' ? 'bundle' : undefined,
    define: Object.fromEntries(NODES_OWN.map((name) => [name, `FREE_${name}`])),
  })
  const code = outputFiles[0]!.text
  const { imports, inputs } = Object.values(metafile.outputs)[0]!
  return { code, gzippedBytes: gzipSync(code, { level: 9 }).length, imports, inputs }
}

/** The names of Node's globals that a bundle uses unguarded. */
export function freeNamesOf({ code }: Bundle): string[] {
  return NODES_OWN.filter((name) => code.includes(`FREE_${name}`))
}
