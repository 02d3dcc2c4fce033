import { execFile } from 'node:child_process'
import { cpus } from 'node:os'
import { promisify } from 'node:util'

/** Whether the client and Redis run on two cores or share one. */
export type Cores = 'apart' | 'together'

const run = promisify(execFile)

/** Runs `use` with this process and Redis bound to fixed cores. Linux only. */
export async function boundToCores<Result>(
  redisPid: number,
  cores: Cores,
  use: () => Promise<Result>,
): Promise<Result> {
  await bind(process.pid, '0')
  await bind(redisPid, cores === 'apart' ? '1' : '0')
  try {
    return await use()
  } finally {
    await bind(process.pid, `0-${cpus().length - 1}`)
  }
}

/** Binds all threads of a process. */
async function bind(pid: number, cores: string): Promise<void> {
  await run('taskset', ['--all-tasks', '--cpu-list', '--pid', cores, String(pid)])
}
