import type { Command } from 'commander'

export function addDemoCommand(program: Command): void {
  program
    .command('demo')
    .description(
      'show what a fixed and a sliding window let through when requests burst at the edge of a window',
    )
    .action(async () => {
      // The web server and the load generator are loaded by nobody else.
      const { runDemo } = await import('../demo/run-demo.ts')
      await runDemo()
    })
}
