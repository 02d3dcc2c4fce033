import { spawn } from 'node:child_process'

/** A parsed response of `/metrics`. */
export class Scraped {
  readonly text: string
  readonly #values = new Map<string, number>()

  constructor(text: string) {
    this.text = text
    for (const line of text.split('\n')) {
      const [, name, labels = '', value] = /^([a-z0-9_]+)(?:\{(.*)\})? (\S+)$/.exec(line) ?? []
      if (name !== undefined) this.#values.set(wordOf(name, labelsIn(labels)), Number(value))
    }
  }

  value(name: string, labels: Readonly<Record<string, string>> = {}): number | undefined {
    return this.#values.get(wordOf(name, labels))
  }

  /** Returns all values of a metric with these labels, by its other labels. */
  values(name: string, labels: Readonly<Record<string, string>> = {}): Record<string, number> {
    const found: Record<string, number> = {}
    for (const [word, value] of this.#values) {
      const [of, all] = JSON.parse(word) as [string, [string, string][]]
      if (of !== name || !Object.entries(labels).every(([k, v]) => all.some(([a, b]) => a === k && b === v)))
        continue
      found[
        all
          .filter(([label]) => !(label in labels))
          .map(([, text]) => text)
          .join(' ')
      ] = value
    }
    return found
  }

  /** Returns all names in `# TYPE` lines. */
  names(): string[] {
    return [...this.text.matchAll(/^# TYPE (\S+)/gm)].map(([, name]) => name!)
  }

  get size(): number {
    return this.#values.size
  }
}

function wordOf(name: string, labels: Readonly<Record<string, string>>): string {
  return JSON.stringify([name, Object.entries(labels).sort(([a], [b]) => (a < b ? -1 : 1))])
}

function labelsIn(text: string): Record<string, string> {
  return Object.fromEntries(
    [...text.matchAll(/([a-z_]+)="([^"]*)"/g)].map(([, name, value]) => [name, value]),
  )
}

/** Returns the complaints of promtool about the text. */
export async function promtool(text: string): Promise<string> {
  const child = spawn('promtool', ['check', 'metrics'], { stdio: ['pipe', 'pipe', 'pipe'] })
  let said = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (chunk: string) => {
      said += chunk
    })
  }
  child.stdin.end(text)
  const code = await new Promise((resolve, reject) => child.once('error', reject).once('close', resolve))
  return code === 0 ? '' : `${code}: ${said}`
}
