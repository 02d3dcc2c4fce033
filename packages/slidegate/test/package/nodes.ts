import { join } from 'node:path'
import { installPrograms } from './npm.ts'

/** The oldest Node that is supported, and the newest of the releases that are. */
export const NODES = ['20.19.0', '22.23.3', '24.21.0'] as const
export type NodeVersion = (typeof NODES)[number]

/** Installs them by npm, where they are not yet; tells where the program of each is. */
export async function installNodes(): Promise<(version: NodeVersion) => string> {
  // What the package `node` installs when it is installed itself, if it may.
  const name = `node-${process.platform}-${process.arch}`
  const dependencies = Object.fromEntries(
    NODES.map((version) => [`node-${version}`, `npm:${name}@${version}`]),
  )
  const modules = await installPrograms('slidegate-nodes', dependencies)
  return (version) => join(modules, `node-${version}`, 'bin/node')
}
