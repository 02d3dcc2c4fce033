import { join } from 'node:path'
import { installPrograms } from '../package/npm.ts'

/** The runtimes that these tests start. The packages `bun`, `deno` and `workerd` would install the same. */
const RUNTIMES = {
  bun: {
    name: `@oven/bun-linux-${process.arch === 'arm64' ? 'aarch64' : 'x64'}`,
    version: '1.4.5',
    program: 'bin/bun',
  },
  deno: { name: `@deno/linux-${process.arch}-glibc`, version: '2.9.6', program: 'deno' },
  workerd: {
    name: `@cloudflare/workerd-linux-${process.arch === 'arm64' ? 'arm64' : '64'}`,
    version: '1.20261117.1',
    program: 'bin/workerd',
  },
} as const
export type RuntimeName = keyof typeof RUNTIMES

/** Installs a runtime with npm if it is missing. Returns the path of its program. */
export async function installRuntime(runtime: RuntimeName): Promise<string> {
  const { name, version, program } = RUNTIMES[runtime]
  const modules = await installPrograms(`slidegate-${runtime}`, { [name]: version })
  return join(modules, name, program)
}
