import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { ROOT } from '../docs/markdown.ts'
import { npm } from './npm.ts'

/** The oldest Node that is supported, and the newest of the releases that are. */
export const NODES = ['20.19.0', '22.23.3', '24.21.0'] as const
export type NodeVersion = (typeof NODES)[number]

const FOLDER = join(ROOT, 'node_modules/.cache/slidegate-nodes')

/** Installs them by npm, where they are not yet; tells where the program of each is. */
export async function installNodes(): Promise<(version: NodeVersion) => string> {
  // What the package `node` installs when it is installed itself, if it may.
  const name = `node-${process.platform}-${process.arch}`
  const dependencies = Object.fromEntries(
    NODES.map((version) => [`node-${version}`, `npm:${name}@${version}`]),
  )
  await mkdir(FOLDER, { recursive: true })
  await writeFile(join(FOLDER, 'package.json'), JSON.stringify({ private: true, dependencies }))
  await npm(FOLDER, ['install'])
  return (version) => join(FOLDER, 'node_modules', `node-${version}`, 'bin/node')
}
