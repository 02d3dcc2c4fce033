// slidegate replay, demo.

import { type Command, Option } from 'commander'
import type { ReplayFlags } from '#replay/run-replay.js'
import { collect } from '../client/arguments.ts'
import { VERSION } from '../service/instance.ts'

export function addReplayCommand(program: Command): void {
  program
    .command('replay')
    .description(
      'run an access log, or captured requests, through the limiter, at the time of the log, and report what it would have done',
    )
    .argument(
      '<file>',
      'access log, common or combined format or JSON lines, plain or gzip; - for the standard input',
    )
    .requiredOption(
      '--limit <limit>',
      'requests per sliding window, like 100/1m or name=100/1m; repeatable',
      collect,
    )
    .option('--key <field>', 'whom to count: ip, user, method, path, status, or a field of JSON lines', 'ip')
    .option('--store <url>', 'decide in this Redis, like redis://127.0.0.1:6379 (default: in memory)')
    .addOption(
      new Option('--compare <kind>', 'also report what another kind of limit would have done').choices([
        'fixed',
        'bucket',
      ]),
    )
    .option('--json', 'print one JSON object')
    .option('--chart', 'print a chart over time; the default on a terminal')
    .option('--report <file>', 'write the report as a page of HTML, with charts')
    .option('--limiter <name>', 'of captured requests: only those that this one has decided')
    .addOption(
      new Option('--format <format>', 'format of the lines').choices(['auto', 'clf', 'json']).default('auto'),
    )
    .option('--time-field <field>', 'field of JSON lines with the time', 'time')
    .option(
      '--cost-field <field>',
      'field of JSON lines with the cost (default: 1, and of captured requests what they took)',
    )
    .option(
      '--reorder <duration>',
      'how late a line may come and still be decided in the order of time',
      '5m',
    )
    .option('--top <count>', 'how many of the callers denied most to report', '10')
    .action(async (file: string, flags: ReplayFlags) => {
      // Whoever asks for another command need not wait until all this is loaded.
      const { runReplay } = await import('#replay/run-replay.js')
      await runReplay(file, flags, VERSION)
    })
}

export function addDemoCommand(program: Command): void {
  program
    .command('demo')
    .description(
      'show what a fixed and a sliding window let through when requests burst at the edge of a window',
    )
    .action(async () => {
      // The web server and the load generator are loaded by nobody else.
      const { runDemo } = await import('#replay/demo/run-demo.js')
      await runDemo()
    })
}
