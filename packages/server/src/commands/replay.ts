// slidegate replay, demo.

import { Argument, type Command, Option } from 'commander'
import type { ReplayFlags } from '../../../replay/src/run-replay.ts'
import { collect } from '../client/arguments.ts'
import { VERSION } from '../service/instance.ts'

export function addReplayCommand(program: Command): void {
  program
    .command('replay')
    .description(
      'replay the requests in a log at their logged times, and report which ones the limits would deny',
    )
    .argument(
      '<file>',
      'access log in common, combined or JSON lines format, plain or gzip; - reads standard input',
    )
    .option(
      '--limit <limit>',
      'requests per sliding window, such as 100/1m or name=100/1m; repeatable; if omitted, the report only suggests limits',
      collect,
    )
    .option('--key <field>', 'field to use as the key: ip, user, method, path, status, or a JSON field', 'ip')
    .option('--store <url>', 'use this Redis, such as redis://127.0.0.1:6379 (default: in memory)')
    .addOption(
      new Option('--compare <kind>', 'also report the result of another algorithm').choices([
        'fixed',
        'bucket',
      ]),
    )
    .option('--json', 'print one JSON object')
    .option('--chart', 'print a chart over time (default on a terminal)')
    .option('--report <file>', 'write the report as an HTML page with charts')
    .option('--limiter <name>', "replay only this limiter's captured requests")
    .addOption(new Option('--format <format>', 'log format').choices(['auto', 'clf', 'json']).default('auto'))
    .option('--time-field <field>', 'JSON field with the time', 'time')
    .option(
      '--cost-field <field>',
      'JSON field with the cost (default: 1, or the recorded cost for captured requests)',
    )
    .option('--reorder <duration>', 'how far lines may be out of order', '5m')
    .option('--top <count>', 'number of keys to report; those with the most denials come first', '10')
    .action(async (file: string, flags: ReplayFlags) => {
      // Loaded late, so that other commands start fast.
      const { runReplay } = await import('../../../replay/src/run-replay.ts')
      await runReplay(file, flags, VERSION)
    })
}

export function addDemoCommand(program: Command): void {
  program
    .command('demo')
    .description('show why a fixed window or separate Redis commands admit too many requests')
    .addArgument(
      new Argument(
        '[demo]',
        'burst: a burst at a window boundary, in memory; race: concurrent callers, on Redis',
      )
        .choices(['burst', 'race'])
        .default('burst'),
    )
    .option('--store <url>', 'race: use this Redis', 'redis://127.0.0.1:6379')
    .action(async (demo: 'burst' | 'race', { store }: { readonly store: string }) => {
      // Loaded late, because the web server, the load generator and the Redis client are large.
      if (demo === 'race') {
        const { runRace } = await import('../../../replay/src/demo/race.ts')
        return runRace(store)
      }
      const { runDemo } = await import('../../../replay/src/demo/run-demo.ts')
      return runDemo()
    })
}
