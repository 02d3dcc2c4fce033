import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { ROOT } from '../../packages/slidegate/test/docs/markdown.ts'

/** The folders that have a lockfile, in the order in which `bench/` looks for packages. */
const PROJECTS = [join(ROOT, 'bench'), ROOT]

/** The folder of an installed package, as the tests in `bench/` import it. */
export function folderOf(name: string): string {
  const folders = PROJECTS.map((project) => join(project, 'node_modules', name))
  const folder = folders.find((each) => existsSync(each))
  if (folder === undefined) throw new Error(`${name} is not installed. Run: node scripts/install.js bench`)
  return folder
}

/** The version of an installed package. */
export function installedVersion(name: string): string {
  return JSON.parse(readFileSync(join(folderOf(name), 'package.json'), 'utf8')).version
}

/** The version of a package in the lockfiles, if they have it. */
export function lockedVersion(name: string): string | undefined {
  const locked = PROJECTS.map((project) => {
    const { packages } = JSON.parse(readFileSync(join(project, 'package-lock.json'), 'utf8'))
    return packages[`node_modules/${name}`]?.version as string | undefined
  })
  return locked.find((version) => version !== undefined)
}
