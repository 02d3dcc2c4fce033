import { type Command, Option } from 'commander'
import { pino } from 'pino'

interface ServeOptions {
  readonly config: string
  readonly http?: string
  readonly grpc?: string
}

export function addServeCommand(program: Command): void {
  program
    .command('serve')
    .description('run the service: HTTP, forward auth for gateways, and the rate limit service of Envoy')
    .requiredOption('-c, --config <file>', 'the configuration, YAML or JSON')
    .addOption(new Option('--http <address>', 'listen there in place of listen.http').env('SLIDEGATE_HTTP'))
    .addOption(new Option('--grpc <address>', 'listen there in place of listen.grpc').env('SLIDEGATE_GRPC'))
    .action(async (options: ServeOptions) => {
      const [{ loadConfig }, { startService }] = await Promise.all([
        import('../config/load.ts'),
        import('../service/running.ts'),
      ])
      const loaded = loadConfig(options.config)
      const { config } = loaded
      const log = pino({ level: config.logging?.level ?? 'info' })
      const listen = {
        ...config.listen,
        ...(options.http && { http: options.http }),
        ...(options.grpc && { grpc: options.grpc }),
      }
      const running = await startService({ loaded: { ...loaded, config: { ...config, listen } }, log })
      log.info({ http: running.httpUrl }, 'slidegate is listening')
      const stop = () => void running.stop()
      process.once('SIGTERM', stop)
      process.once('SIGINT', stop)
    })
}
