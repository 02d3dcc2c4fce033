import { onTestFinished } from 'vitest'

/** Collects the process warnings about a limiter from now on, as `code: message`. */
export function warningsAbout(limiter: string): {
  readonly codes: () => Promise<string[]>
  readonly all: Error[]
} {
  const all: (Error & { code?: string })[] = []
  const listener = (warning: Error) => {
    if (warning.name === 'SlidegateWarning' && warning.message.startsWith(`limiter "${limiter}": `))
      all.push(warning)
  }
  process.on('warning', listener)
  onTestFinished(() => void process.off('warning', listener))
  return {
    all,
    async codes() {
      // Node emits warnings at the end of the tick.
      await new Promise(setImmediate)
      return all.map(({ code }) => String(code))
    },
  }
}
