import { join } from 'node:path'
import { installPrograms } from './npm.ts'

/** The oldest supported Node and the latest release of each newer major version. */
export const NODES = ['20.19.0', '22.23.3', '24.21.0'] as const
export type NodeVersion = (typeof NODES)[number]

/** Installs Node versions with npm if they are missing. Returns a function for the path of each program. */
export async function installNodes(
  versions: readonly NodeVersion[],
): Promise<(version: NodeVersion) => string> {
  // The package `node` would install the same.
  const name = `node-${process.platform}-${process.arch}`
  const dependencies = Object.fromEntries(
    versions.map((version) => [`node-${version}`, `npm:${name}@${version}`]),
  )
  const modules = await installPrograms('slidegate-nodes', dependencies)
  return (version) => join(modules, `node-${version}`, 'bin/node')
}
