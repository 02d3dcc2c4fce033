import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { ROOT } from '../../packages/slidegate/test/docs/markdown.ts'

/** Folders with a lockfile, in the order of resolution from `bench/`. */
const PROJECTS = [join(ROOT, 'bench'), ROOT]

/** Returns the folder of an installed package, as imported in `bench/`. */
export function folderOf(name: string): string {
  const folders = PROJECTS.map((project) => join(project, 'node_modules', name))
  const folder = folders.find((each) => existsSync(each))
  if (folder === undefined) throw new Error(`${name} is not installed. Run: node scripts/install.js bench`)
  return folder
}

/** Returns the version of an installed package. */
export function installedVersion(name: string): string {
  return JSON.parse(readFileSync(join(folderOf(name), 'package.json'), 'utf8')).version
}

/** Returns the version of a package in the lockfiles, if it's there. */
export function lockedVersion(name: string): string | undefined {
  const locked = PROJECTS.map((project) => {
    const { packages } = JSON.parse(readFileSync(join(project, 'package-lock.json'), 'utf8'))
    return packages[`node_modules/${name}`]?.version as string | undefined
  })
  return locked.find((version) => version !== undefined)
}
