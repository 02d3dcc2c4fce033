import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Block, codeBlocks, type Page, ROOT } from './markdown.ts'
import { codeOnServers } from './programs.ts'

/** The shell session of a page, from top to bottom. */
export interface Session {
  readonly page: string
  readonly steps: readonly Step[]
}

export type Step =
  /** A file to save in the current folder. */
  { readonly file: string; readonly code: string } | Commands

export interface Commands {
  /** Page and line: `README.md:17`. */
  readonly name: string
  readonly commands: string
  /** The expected output. `undefined` allows any output. */
  readonly printed: string | undefined
}

export function sessionOf({ path, text }: Page): Session {
  const blocks = codeBlocks(text)
  const steps = blocks.flatMap((block, i): Step[] => {
    const { language, code, line, file } = block
    if (file !== undefined) return [{ file, code }]
    if (language !== 'sh') return []
    return [{ name: `${path}:${line}`, commands: code, printed: printedBehind(block, blocks[i + 1], text) }]
  })
  return { page: path, steps }
}

/** Returns the `text` block right after a block. */
function printedBehind(block: Block, next: Block | undefined, text: string): string | undefined {
  if (next?.language !== 'text') return undefined
  const between = text.split('\n').slice(endOf(block), next.line - 2)
  return between.every((line) => line === '') ? next.code : undefined
}

function endOf({ code, line }: Block): number {
  return line + code.split('\n').length
}

/** Documented ports -> ports in the tests. */
export interface Ports {
  readonly 3000: number
  readonly 6379: number
  readonly 8080: number
}

/** A timeout for a busy machine. After a page stops Redis, each request waits this long. */
const TIMEOUT_MS = 2000

/** Marks the end of a block's output. */
export const END = '\u0004'

/** Returns the session as a bash script. Functions replace programs that tests shouldn't run. */
export function scriptOf({ steps }: Session, ports: Ports): string {
  const here = (text: string) =>
    text.replaceAll(/\b(?:3000|6379|8080)\b/g, (port) => `${ports[Number(port) as keyof Ports]}`)
  const parts = steps.map((step) => {
    if ('file' in step) {
      const isProgram = /\.m?[jt]s$/.test(step.file)
      const code = isProgram
        ? codeOnServers(step.code, here('redis://127.0.0.1:6379'), TIMEOUT_MS)
        : here(step.code)
      return `cat > ${step.file} <<'END_OF_FILE'\n${code}\nEND_OF_FILE`
    }
    const servers = step.commands.match(/ &$/gm)?.length ?? 0
    const until = servers > 0 ? `; until_listening $(( before + ${servers} ))` : ''
    return `before=$(listening)\n${here(step.commands)}\n:${until}; printf '${END}'`
  })
  return [preamble(ports), ...parts, ''].join('\n')
}

/** Returns output with the documented ports, in whole lines. */
export function documented(output: string, ports: Ports): string {
  let text = output.replaceAll('\r', '')
  for (const [port, own] of Object.entries(ports)) text = text.replaceAll(RegExp(`\\b${own}\\b`, 'g'), port)
  return text === '' || text.endsWith('\n') ? text : `${text}\n`
}

function preamble(ports: Ports): string {
  const { scripts } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
  const built = Object.entries<string>(scripts).map(([name, script]) => {
    return `  [${name}]='${script.replaceAll('npm run build && ', '').replaceAll("'", "'\\''")}'`
  })
  return `set -eo pipefail
export PORT=${ports[3000]} SLIDEGATE_HTTP=127.0.0.1:${ports[8080]}

declare -A scripts=(
${built.join('\n')}
)

# Packages are already installed and built. Servers run in the background, as in a second terminal.
npm() {
  case "$*" in
    ci | test | 'run build') ;;
    start | 'start --prefix '*) started "\${3:-.}" > /dev/null 2>&1 & until_listening $(( before + 1 )) ;;
    'run '*) bash -c "\${scripts[$2]} \${*:4}" ;;
    'install '*) shift; install "$@" ;;
    *) command npm "$@" ;;
  esac
}

started() { cd "$1"; exec bash -c "\${scripts[start]}"; }

# Unpacks tarballs. Other packages resolve from the folders above.
install() {
  local package name
  for package in "$@"; do
    if [[ $package == *.tgz ]]; then
      name=$(basename "$package")
      mkdir -p "node_modules/\${name%-[0-9]*}"
      tar -xzf "$package" -C "node_modules/\${name%-[0-9]*}" --strip-components=1
    else
      test -d "${ROOT}/node_modules/$package"
    fi
  done
}

# Prints no progress, as on a terminal.
curl() { command curl --no-progress-meter "$@"; }

# Waits for the end of the process, as a person would.
kill() {
  builtin kill "$@"
  wait "\${@: -1}" 2> /dev/null || true
  before=$(listening)
}

listening() {
  local port count=0
  for port in ${Object.values(ports).join(' ')}; do
    if (exec 3<> /dev/tcp/127.0.0.1/$port) 2> /dev/null; then count=$(( count + 1 )); fi
  done
  echo $count
}

until_listening() {
  local tries
  for (( tries = 0; tries < 600; tries++ )); do
    if (( $(listening) >= $1 )); then return; fi
    sleep 0.1
  done
  return 1
}
`
}
