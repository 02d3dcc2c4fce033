/** Milliseconds of the CPU that something takes this process: as many on a machine that is busy, or pauses. */
export async function cpuMsOf(run: () => unknown): Promise<number> {
  const before = process.cpuUsage()
  await run()
  const { user, system } = process.cpuUsage(before)
  return (user + system) / 1000
}
