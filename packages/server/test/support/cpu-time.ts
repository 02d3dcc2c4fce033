/** Returns the CPU milliseconds that a function takes in this process. Independent of the machine's load. */
export async function cpuMsOf(run: () => unknown): Promise<number> {
  const before = process.cpuUsage()
  await run()
  const { user, system } = process.cpuUsage(before)
  return (user + system) / 1000
}
