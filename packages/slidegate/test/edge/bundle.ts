import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import { build, type Metafile } from 'esbuild'

/** Globals that only Node or a few other runtimes have. Bundles must not use their bare names, not even after `typeof`. */
const NODES_OWN = ['process', 'Buffer', 'global', 'setImmediate', 'clearImmediate', '__dirname', '__filename']

export interface Bundle {
  readonly code: string
  readonly gzippedBytes: number
  readonly imports: Metafile['outputs'][string]['imports']
  readonly inputs: Metafile['outputs'][string]['inputs']
}

/** Peer dependencies that run everywhere. The user installs them. */
export const PEERS: readonly string[] = ['@opentelemetry/api']

/**
 * Bundles code that imports the built package, as for Workers, edge functions and browsers.
 *
 * An import of a Node module fails, since only peers are external.
 */
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

/** Returns the names of Node globals that a bundle uses unguarded. */
export function freeNamesOf({ code }: Bundle): string[] {
  return NODES_OWN.filter((name) => code.includes(`FREE_${name}`))
}
